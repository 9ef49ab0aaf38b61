"""Progress of a training for Kubeflow Trainer, which shows it with the TrainJob (`kubectl get trainjob`).

    from horovod import kubeflow

    for step in range(steps):
        ...
        kubeflow.report_progress(100 * (step + 1) / steps, metrics={'loss': loss})

Trainer (2.2 and newer, with its feature gate for the status of a TrainJob) gives its pods an address, a certificate and a token. A script that
runs anywhere else calls the same function, which does nothing there.
"""

import atexit
import datetime
import json
import math
import os
import ssl
import sys
import threading
import urllib.error
import urllib.request

_URL = 'KUBEFLOW_TRAINER_SERVER_URL'
_CERTIFICATE = 'KUBEFLOW_TRAINER_SERVER_CA_CERT'
_TOKEN = 'KUBEFLOW_TRAINER_SERVER_TOKEN'
_APART_S = 5.0  # what Trainer asks of its clients
_LIMIT_S = 5.0  # of a request


def report_progress(percent=None, remaining_s=None, metrics=None):
    """Says how far the training is.

    It returns at once: a thread sends the newest report, at most one in 5 seconds, and the last one before the process ends. Only rank 0 sends, so
    all ranks may call it. What goes wrong never ends the training; rank 0 says it once on stderr.

    Args:
        percent: Of the whole training, from 0 to 100; None: not known. Trainer gets a whole number, rounded down, so that 100 means the end.
        remaining_s: Seconds until the end, at least 0; None: not known.
        metrics: Numbers by name, such as {'loss': 0.25}: Python's, NumPy's, or tensors of one element.

    Returns:
        Whether it will be sent: this is rank 0 of a TrainJob, and the address is one of https.

    Raises:
        ValueError: A number is out of its range, or a name is empty.
        TypeError: Something is no number.
    """
    status = _status(percent, remaining_s, metrics or {})
    if os.environ.get('HOROVOD_RANK', '0') != '0' or not os.environ.get(_URL):
        return False
    return _reporter().submit(status)


def _status(percent, remaining_s, metrics):
    """What Trainer gets, without the time."""
    status = {}
    if percent is not None:
        if not 0 <= percent <= 100:
            raise ValueError('report_progress() takes a percent from 0 to 100, but got {}.'.format(percent))
        status['progressPercentage'] = int(percent)
    if remaining_s is not None:
        if not 0 <= remaining_s < 2**31:
            raise ValueError('report_progress() takes a remaining_s of at least 0 that is finite, but got {}.'.format(remaining_s))
        status['estimatedRemainingSeconds'] = int(math.ceil(remaining_s))
    if metrics:
        if not all([isinstance(name, str) and name for name in metrics]):
            raise ValueError('report_progress() takes metrics by names that are not empty, but got {}.'.format(sorted(map(repr, metrics))))
        status['metrics'] = [{'name': name, 'value': '{:.10g}'.format(float(value))} for name, value in metrics.items()]
    return status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is for one address."""

    def redirect_request(self, *unused):
        return None


class _Reporter:
    """Sends the newest report from a thread of its own."""

    def __init__(self):
        self.pid = os.getpid()
        self._changed = threading.Condition()
        self._newest = None  # not sent yet
        self._is_ending = False
        self._has_complained = False
        self._thread = None

    def submit(self, status):
        if not os.environ[_URL].startswith('https://'):
            self._complain('{} is no address of https, and the token of this pod is a secret'.format(_URL))
            return False
        status['lastUpdatedTime'] = datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
        with self._changed:
            self._newest = status
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name='hvd-progress', daemon=True)
                self._thread.start()
                atexit.register(self._end)
            self._changed.notify()
        return True

    def _run(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._newest is not None or self._is_ending)
                status, self._newest = self._newest, None
            if status is None:
                return
            self._send(status)
            with self._changed:
                self._changed.wait_for(lambda: self._is_ending, _APART_S)

    def _end(self):
        """What is left is sent without delay: 100 percent, as a rule."""
        if self.pid != os.getpid():
            return
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(2 * _LIMIT_S)

    def _send(self, status):
        try:
            with open(os.environ[_TOKEN]) as file:  # each time: it is renewed
                token = file.read().strip()
            request = urllib.request.Request(os.environ[_URL], json.dumps({'trainerStatus': status}).encode(), {
                'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'})
            context = ssl.create_default_context(cafile=os.environ.get(_CERTIFICATE) or None)
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context), _NoRedirect)
            opener.open(request, timeout=_LIMIT_S).close()
        except urllib.error.HTTPError as error:
            self._complain('{} answers {} {}'.format(os.environ[_URL], error.code, error.reason))
        except KeyError as error:
            self._complain('{} is not set'.format(error.args[0]))
        except (OSError, ValueError) as error:
            self._complain('{}'.format(getattr(error, 'reason', error)))

    def _complain(self, why):
        if not self._has_complained:
            self._has_complained = True
            print('hvdrun: progress is not reported to Kubeflow Trainer, because {}; the training goes on.'.format(why), file=sys.stderr, flush=True)


_lock = threading.Lock()
_only = None


def _reporter():
    """Of this process: the thread of one that was forked is not in its child."""
    global _only
    with _lock:
        if _only is None or _only.pid != os.getpid():
            _only = _Reporter()
        return _only
