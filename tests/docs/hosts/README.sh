# A machine with a clone, a network of its own, and nothing that runs.
offline
clone
