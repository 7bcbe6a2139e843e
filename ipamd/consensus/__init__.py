"""Owns the replicated log: pysyncobj as the Raft engine, behind a journal, transport and apply loop of our own."""
