"""The news that a worker of an elastic job hears about its hosts."""

from horovod.common.elastic import HostUpdateResult, WorkerNotificationManager  # noqa: F401
