"""A deadline that is passed on."""

import time


class TimeoutException(Exception):
    """Something took too long."""


class Timeout(object):
    """So many seconds from now. message: the sentence for the error, with {activity} for what was awaited."""

    def __init__(self, timeout, message, exception=TimeoutException):
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._message = message
        self._exception = exception

    def remaining(self):
        """Seconds that are left, at least 0."""
        return max(0.0, self._deadline - time.monotonic())

    def timed_out(self):
        return time.monotonic() >= self._deadline

    def check_time_out_for(self, activity):
        """Raises the exception when the time is over."""
        if self.timed_out():
            raise self._exception('{} Timeout after {} seconds.'.format(self._message.format(activity=activity),
                                                                        self._timeout))
