# A group whose allocations keep their addresses: each is known by the name in IPAMD_POD_REF, not by its allocation id.
job "database" {
  group "db" {
    count = 3

    network {
      mode = "cni/storage"

      cni {
        args = {
          IPAMD_POD_REF = "${NOMAD_NAMESPACE}/${NOMAD_JOB_NAME}-${NOMAD_GROUP_NAME}-${NOMAD_ALLOC_INDEX}"
        }
      }
    }

    # The old allocation ends before the new one of its name begins: two of one name would share an address.
    update {
      max_parallel = 1
      canary       = 0
    }

    task "db" {
      driver = "docker"

      config {
        image = "postgres:17"
      }
    }
  }
}
