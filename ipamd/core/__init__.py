"""The pure core: what ipamd decides. Standard library only; no clock, no random source, no I/O."""
