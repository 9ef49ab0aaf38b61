"""A key-value store over HTTP at which the ranks of one world meet, for programs that start their ranks by themselves, as
executors of Ray do. hvdrun needs none of it.

Anyone who reaches the port can read and write its contents, as with Horovod's: use it in networks that you trust, or start
ranks with hvdrun, whose connections are authenticated and encrypted.
"""

import collections
import http.server
import socket
import threading
import urllib.parse

MOST_BYTES = 64 << 20  # of all values: a world stores some hundred bytes per rank
MOST_VALUE_BYTES = 16 << 20
MOST_CONNECTIONS = 1024
SILENCE_LIMIT_S = 3  # of a client within a request

_OK, _BAD_REQUEST, _NOT_FOUND, _TIMEOUT, _TOO_LARGE, _FULL = 200, 400, 404, 408, 413, 507


class _Store:
    """Values by scope and key, within a bound. Any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self._bytes = 0
        self._scopes = {}
        self._sizes = {}  # of the scopes of a world: the number of keys that completes one
        self._ended = collections.defaultdict(set)

    def reset(self, sizes):
        with self._lock:
            self._scopes, self._sizes, self._bytes = {}, dict(sizes), 0
            self._ended.clear()

    def get(self, scope, key):
        with self._lock:
            return self._scopes.get(scope, {}).get(key)

    def put(self, scope, key, value):
        """Returns False when it does not fit."""
        with self._lock:
            values = self._scopes.get(scope, {})
            added = len(value) + (0 if key in values else len(scope) + len(key)) - len(values.get(key, b''))
            if self._bytes + added > MOST_BYTES:
                return False
            self._scopes.setdefault(scope, values)[key] = value
            self._bytes += added
            return True

    def delete(self, scope, key):
        """Of a scope of the world nothing goes before each of its ranks has deleted its key."""
        with self._lock:
            size = self._sizes.get(scope)
            if size is None:
                return self._drop(scope, [key])
            self._ended[scope].add(key)
            if len(self._ended[scope]) >= size:
                del self._ended[scope]
                self._drop(scope, list(self._scopes.get(scope, {})))

    def _drop(self, scope, keys):
        values = self._scopes.get(scope, {})
        for key in keys:
            value = values.pop(key, None)
            if value is not None:
                self._bytes -= len(scope) + len(key) + len(value)
        if not values:
            self._scopes.pop(scope, None)


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = SILENCE_LIMIT_S

    def _place(self):
        """(scope, key), or None after an answer that says what is wrong."""
        parts = urllib.parse.urlsplit(self.path).path.strip('/').split('/')
        if len(parts) == 2 and all(parts):
            return parts
        self._answer(_BAD_REQUEST)
        return None

    def _answer(self, code, body=b''):
        self.send_response(code)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        place = self._place()
        if place is None:
            return
        value = self.server.store.get(*place)
        self._answer(_NOT_FOUND if value is None else _OK, value or b'')

    def do_PUT(self):
        place = self._place()
        if place is None:
            return
        length = self.headers.get('Content-Length', '')
        if not length.isdigit():
            return self._answer(_BAD_REQUEST)
        if int(length) > MOST_VALUE_BYTES:
            return self._answer(_TOO_LARGE)
        try:
            value = self.rfile.read(int(length))
        except socket.timeout:
            return self._answer(_TIMEOUT)
        if len(value) < int(length):
            return self._answer(_BAD_REQUEST)
        self._answer(_OK if self.server.store.put(place[0], place[1], value) else _FULL)

    def do_DELETE(self):
        place = self._place()
        if place is None:
            return
        self.server.store.delete(*place)
        self._answer(_OK)

    def log_message(self, *args):
        if self.server.verbose:
            http.server.BaseHTTPRequestHandler.log_message(self, *args)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, verbose):
        http.server.ThreadingHTTPServer.__init__(self, ('0.0.0.0', 0), _Handler)
        self.verbose = verbose
        self.store = _Store()
        self._places = threading.Semaphore(MOST_CONNECTIONS)

    def process_request(self, request, client_address):
        """Beyond the most there may be, a connection is closed; clients try again."""
        if self._places.acquire(blocking=False):
            return http.server.ThreadingHTTPServer.process_request(self, request, client_address)
        self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        try:
            http.server.ThreadingHTTPServer.process_request_thread(self, request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request, client_address):
        """A client that goes away is no news."""
        if self.verbose:
            http.server.ThreadingHTTPServer.handle_error(self, request, client_address)


class RendezvousServer:
    """The server at which ranks meet whose environment has HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT.

    Args:
        verbose: Greater than 0: requests are printed to stderr.
    """

    def __init__(self, verbose=0):
        self._verbose = verbose
        self._httpd = None
        self._thread = None

    @property
    def httpd(self):
        """The server, or None before start()."""
        return self._httpd

    def start(self, handler_cls=None):
        """Begins to serve, in a thread.

        Args:
            handler_cls: Not supported; None.

        Returns: The port, an int; all IPv4 addresses of this host serve it.

        Raises:
            NotImplementedError: A handler of its own was given.
            RuntimeError: It serves already.
        """
        if handler_cls is not None:
            raise NotImplementedError('RendezvousServer.start() takes no handler class of its own; elastic jobs are started by '
                                      '`hvdrun --host-discovery-script SCRIPT -np N python script.py`.')
        if self._httpd is not None:
            raise RuntimeError('This RendezvousServer serves already, at port {}.'.format(self._httpd.server_address[1]))
        self._httpd = _Server(self._verbose > 0)
        self._thread = threading.Thread(target=self._httpd.serve_forever, name='horovod rendezvous', daemon=True)
        self._thread.start()
        return self._httpd.server_address[1]

    def init(self, host_alloc_plan):
        """Empties the store for the ranks of a world. What a rank deletes goes when all ranks of its scope have.

        Args:
            host_alloc_plan: A list of SlotInfo, as get_host_assignments() returns it.

        Returns: The port, an int.

        Raises:
            RuntimeError: start() has not been called.
        """
        if self._httpd is None:
            raise RuntimeError('RendezvousServer.init() needs a server: call start() first.')
        sizes = {}
        for slot in host_alloc_plan:
            sizes['global'] = slot.size
            sizes['local_' + slot.hostname] = slot.local_size
            sizes['cross_' + str(slot.local_rank)] = slot.cross_size
        self._httpd.store.reset(sizes)
        return self._httpd.server_address[1]

    def stop(self):
        """Ends the server and its thread."""
        if self._httpd is None:
            return
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()
        self._httpd = self._thread = None
