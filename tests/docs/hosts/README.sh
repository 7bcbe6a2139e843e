# A machine with a clone, a network of its own, and nothing that runs.
offline
clone
export IPAMD_NODE_NAME=node-1  # a host has it by its own name, but this one may be in a container
