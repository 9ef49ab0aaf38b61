"""A deadline that is passed on."""

import time


class TimeoutException(Exception):
    """A time limit was exceeded."""


class Timeout:
    """A deadline that is passed on.

    Args:
        timeout: Seconds from now.
        message: The sentence of the error, with {activity} for what took too long.
        exception: The class of the error.
    """

    def __init__(self, timeout, message, exception=TimeoutException):
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._message = message
        self._exception = exception

    def remaining(self):
        """Seconds until the deadline.

        Returns: A float, at least 0.
        """
        return max(0.0, self._deadline - time.monotonic())

    def timed_out(self):
        """Returns whether the deadline has passed.

        Returns: True or False.
        """
        return time.monotonic() >= self._deadline

    def check_time_out_for(self, activity):
        """Raises the error when the deadline has passed.

        Args:
            activity: The text to put for {activity}.

        Raises:
            TimeoutException: The deadline has passed; another class if the constructor was given one.
        """
        if self.timed_out():
            raise self._exception('{} Timeout after {} seconds.'.format(self._message.format(activity=activity),
                                                                        self._timeout))
