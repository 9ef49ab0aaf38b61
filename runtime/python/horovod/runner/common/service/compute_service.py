"""Where the processes of a training job and of a job that prepares its data find each other: the addresses of dispatchers, which workers
are ready, and the shutdown.

One request a connection. The server sends a nonce; the client an answer to it: a JSON object and its HMAC-SHA256 with the nonce, by the key
that both have; the server's reply is made in the same way. Nothing is parsed before its digest has been checked, and nothing is unpickled.
"""

import contextlib
import fcntl
import json
import socket
import socketserver
import struct
import threading
import time

from horovod.runner.common.util import secret
from horovod.runner.common.util.timeout import TimeoutException

_GREETING = b'hvd compute service 1\n'
_NONCE_BYTES = 32
_HEAD = struct.Struct('>I{}s'.format(secret.DIGEST_LENGTH))
_MOST_BYTES = 64 << 10
_IO_TIMEOUT_S = 10
_WAIT_S = 5  # how long the server holds a request that waits
_SIOCGIFADDR = 0x8915


def _send(stream, key, direction, nonce, value):
    body = json.dumps(value).encode()
    stream.sendall(_HEAD.pack(len(body), secret.compute_digest(key, direction + nonce + body)) + body)


def _exactly(stream, count):
    data = b''
    while len(data) < count:
        piece = stream.recv(count - len(data))
        if not piece:
            raise ConnectionError('the connection was closed')
        data += piece
    return data


def _receive(stream, key, direction, nonce):
    """PermissionError if the digest does not match the key."""
    length, digest = _HEAD.unpack(_exactly(stream, _HEAD.size))
    if length > _MOST_BYTES:
        raise PermissionError('a message of {} bytes is longer than any of this protocol'.format(length))
    body = _exactly(stream, length)
    if not secret.check_digest(key, direction + nonce + body, digest):
        raise PermissionError('the digest of a message does not match the key')
    return json.loads(body.decode())


class _State:
    """What the server knows. Methods that are calls of clients return what JSON can carry."""

    def __init__(self, dispatchers, workers_per_dispatcher):
        self._changed = threading.Condition()
        self._workers_per_dispatcher = workers_per_dispatcher
        self._addresses = [None] * dispatchers
        self._workers = [set() for _ in range(dispatchers)]
        self._is_over = False

    def _checked(self, dispatcher):
        if type(dispatcher) is not int or not 0 <= dispatcher < len(self._addresses):
            raise ValueError('there is no dispatcher {!r}: the service has {}, counted from 0'.format(dispatcher, len(self._addresses)))
        return dispatcher

    def _wait(self, is_done, value):
        """{'value': value()} once it is done, {} if it is not after a while."""
        with self._changed:
            return {'value': value()} if self._changed.wait_for(is_done, _WAIT_S) else {}

    def ping(self):
        return {'value': None}

    def register_dispatcher(self, dispatcher, address):
        dispatcher = self._checked(dispatcher)
        with self._changed:
            if self._addresses[dispatcher] not in (None, address):
                raise ValueError('dispatcher {} is registered already, at {}'.format(dispatcher, self._addresses[dispatcher]))
            self._addresses[dispatcher] = str(address)
            self._changed.notify_all()
        return {'value': None}

    def wait_for_dispatcher(self, dispatcher):
        dispatcher = self._checked(dispatcher)
        return self._wait(lambda: self._addresses[dispatcher] is not None, lambda: self._addresses[dispatcher])

    def register_worker(self, dispatcher, worker):
        with self._changed:
            self._workers[self._checked(dispatcher)].add(worker)
            self._changed.notify_all()
        return {'value': None}

    def wait_for_workers(self, dispatcher):
        workers = self._workers[self._checked(dispatcher)]
        return self._wait(lambda: len(workers) >= self._workers_per_dispatcher, lambda: len(workers))

    def shutdown(self):
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        return {'value': None}

    def wait_for_shutdown(self):
        return self._wait(lambda: self._is_over, lambda: None)


_CALLS = ('ping', 'register_dispatcher', 'wait_for_dispatcher', 'register_worker', 'wait_for_workers', 'shutdown', 'wait_for_shutdown')


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        key, state = self.server.key, self.server.state
        self.request.settimeout(_IO_TIMEOUT_S)
        nonce = secret.make_secret_key()
        with contextlib.suppress(OSError):  # a client that has gone, one without the key, or a port scanner
            self.request.sendall(_GREETING + nonce)
            call = _receive(self.request, key, b'request', nonce)
            try:
                if call.get('call') not in _CALLS:
                    raise ValueError('there is no call {!r}'.format(call.get('call')))
                reply = getattr(state, call['call'])(*call['arguments'])
            except (ValueError, TypeError, KeyError) as error:
                reply = {'error': str(error)}
            _send(self.request, key, b'reply', nonce, reply)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128


def _interface_addresses():
    """{interface: its IPv4 address}."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has none
                packed = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack('256s', name.encode()[:15]))
                found[name] = socket.inet_ntoa(packed[20:24])
    return found


def _host_towards(address):
    """The address of this host on the network by which it reaches another."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return probe.getsockname()[0]


class ComputeService:
    """The server. It runs in threads of this process until shutdown().

    Args:
        dispatchers: Number of dispatchers.
        workers_per_dispatcher: Number of workers of each.
        key: The key that clients need, bytes (see horovod.runner.common.util.secret).
        nics: The names of the network interfaces whose addresses are given to clients; by default all.
    """

    def __init__(self, dispatchers, workers_per_dispatcher, key, nics=None):
        if dispatchers < 1 or workers_per_dispatcher < 1:
            raise ValueError('A compute service needs at least one dispatcher and one worker for each, but there are {} and {}.'.format(
                dispatchers, workers_per_dispatcher))
        self._nics = nics
        self._server = _Server(('0.0.0.0', 0), _Handler)
        self._server.key = key
        self._server.state = _State(dispatchers, workers_per_dispatcher)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={'poll_interval': 0.1}, name='hvd compute service',
                                        daemon=True)
        self._thread.start()

    def addresses(self):
        """Where clients find it.

        Returns: A dictionary: of each network interface a list of pairs of an address and a port.
        """
        port = self._server.server_address[1]
        return {name: [(address, port)] for name, address in _interface_addresses().items()
                if not self._nics or name in self._nics}

    def shutdown(self):
        """Ends the server."""
        self._server.state.shutdown()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class ComputeClient:
    """A client of a ComputeService.

    Args:
        compute_addresses: What ComputeService.addresses() returns.
        key: The key of the service, bytes.
        verbose: Ignored; there for scripts written for Horovod.
    """

    def __init__(self, compute_addresses, key, verbose=1):
        self._addresses = [tuple(address) for addresses in compute_addresses.values() for address in addresses]
        self._key = key
        self._working = None  # the address that responded

    def _request_from(self, address, call, arguments):
        with socket.create_connection(address, timeout=_IO_TIMEOUT_S) as stream:
            stream.settimeout(_IO_TIMEOUT_S + _WAIT_S)
            if _exactly(stream, len(_GREETING)) != _GREETING:
                raise ConnectionError('something else answers there')
            nonce = _exactly(stream, _NONCE_BYTES)
            _send(stream, self._key, b'request', nonce, {'call': call, 'arguments': arguments})
            try:
                reply = _receive(stream, self._key, b'reply', nonce)
            except ConnectionError:
                raise PermissionError('it closed the connection without a reply; is the key that of this service?') from None
        self._working = address
        return reply

    def _request(self, call, *arguments):
        failures = []
        for address in [self._working] if self._working else self._addresses:
            try:
                reply = self._request_from(address, call, arguments)
            except OSError as error:
                failures.append('{}:{}: {}'.format(*address, error))
                continue
            if 'error' in reply:
                raise ValueError('The compute service refused {}: {}.'.format(call, reply['error']))
            return reply
        raise ConnectionError('The compute service cannot be reached: {}.'.format('; '.join(failures) or 'it has no address'))

    def connect(self):
        """Finds the address at which the service responds.

        Raises:
            ConnectionError: None does.
        """
        self._request('ping')

    def _wait(self, call, arguments, timeout, what):
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            reply = self._request(call, *arguments)
            if 'value' in reply:
                return reply['value']
            if end is not None and time.monotonic() >= end:
                raise TimeoutException('{} within {} s; has that job been started, and what does it print?'.format(what, timeout))

    def own_address(self):
        """The address of this host on the network by which it reaches the service.

        Returns: A string.
        """
        return _host_towards(self._working)

    def register_dispatcher(self, dispatcher_id, dispatcher_address):
        """Publishes the address of a dispatcher.

        Args:
            dispatcher_id: Its number, from 0.
            dispatcher_address: Its address.
        """
        self._request('register_dispatcher', dispatcher_id, dispatcher_address)

    def wait_for_dispatcher_registration(self, dispatcher_id, timeout):
        """Waits for a dispatcher.

        Args:
            dispatcher_id: Its number.
            timeout: Seconds.

        Returns: Its address.

        Raises:
            TimeoutException: It has not been registered in time.
        """
        return self._wait('wait_for_dispatcher', [dispatcher_id], timeout, 'Dispatcher {} has not registered'.format(dispatcher_id))

    def register_worker_for_dispatcher(self, dispatcher_id, worker_id):
        """Reports that a worker is ready.

        Args:
            dispatcher_id: The number of its dispatcher.
            worker_id: Its own.
        """
        self._request('register_worker', dispatcher_id, worker_id)

    def wait_for_dispatcher_worker_registration(self, dispatcher_id, timeout):
        """Waits until all workers of a dispatcher are ready.

        Args:
            dispatcher_id: The number of the dispatcher.
            timeout: Seconds.

        Raises:
            TimeoutException: They are not ready in time.
        """
        self._wait('wait_for_workers', [dispatcher_id], timeout, 'Not all workers of dispatcher {} have registered'.format(dispatcher_id))

    def wait_for_shutdown(self):
        """Waits until shutdown() of any client."""
        self._wait('wait_for_shutdown', [], None, '')

    def shutdown(self):
        """Ends the workers of the service."""
        self._request('shutdown')
