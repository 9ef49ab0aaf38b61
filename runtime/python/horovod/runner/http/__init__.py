"""The rendezvous of Horovod's workers over HTTP."""
