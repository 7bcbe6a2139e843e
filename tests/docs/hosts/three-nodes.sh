# A machine with a clone.
offline
export CNI_BIN
clone
