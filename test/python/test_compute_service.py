"""The service by which a training job and the job that prepares its data find each other: calls, waits, and clients without the key."""

import errno
import json
import socket
import struct
import threading
import time

import pytest

from horovod.runner.common.service.compute_service import ComputeClient, ComputeService
from horovod.runner.common.util import secret
from horovod.runner.common.util.timeout import TimeoutException

KEY = b'k' * 32


@pytest.fixture
def service():
    made = ComputeService(2, 2, KEY)
    yield made
    made.shutdown()


def client_of(service, key=KEY):
    return ComputeClient(service.addresses(), key)


def connection_to(service):
    port = service.addresses()['lo'][0][1]
    return socket.create_connection(('127.0.0.1', port), timeout=5)


def test_processes_find_each_other(service):
    client = client_of(service)
    client.register_dispatcher(0, 'grpc://a:1')
    client.register_dispatcher(1, 'grpc://b:2')
    assert client.wait_for_dispatcher_registration(1, 5) == 'grpc://b:2'
    waited = []
    waiter = threading.Thread(target=lambda: waited.append(
        client_of(service).wait_for_dispatcher_worker_registration(0, 20)))
    waiter.start()
    client.register_worker_for_dispatcher(0, 0)
    client.register_worker_for_dispatcher(0, 0)  # the same one again
    assert waiter.is_alive()
    client.register_worker_for_dispatcher(0, 1)
    waiter.join(10)
    assert waited == [None]
    client.shutdown()
    client_of(service).wait_for_shutdown()


def test_a_wait_ends_with_a_sentence(service, monkeypatch):
    monkeypatch.setattr('horovod.runner.common.service.compute_service._WAIT_S', 0.1)
    with pytest.raises(TimeoutException, match='Dispatcher 1 has not registered within 0.3 s'):
        client_of(service).wait_for_dispatcher_registration(1, 0.3)


@pytest.mark.parametrize('call, sentence', [
    (lambda client: client.register_dispatcher(2, 'x'), 'there is no dispatcher 2'),
    (lambda client: client.register_worker_for_dispatcher(-1, 0), 'there is no dispatcher -1'),
    (lambda client: client._request('__init__', 1, 1), 'there is no call'),
    (lambda client: client._request('shutdown', 1), 'refused shutdown')])
def test_what_it_does_not_know_is_refused(service, call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(client_of(service))


def test_a_dispatcher_cannot_be_replaced(service):
    client = client_of(service)
    client.register_dispatcher(0, 'grpc://a:1')
    with pytest.raises(ValueError, match='registered already'):
        client.register_dispatcher(0, 'grpc://mallory:1')


def test_a_client_without_the_key_learns_and_changes_nothing(service):
    client_of(service).register_dispatcher(0, 'grpc://a:1')
    with pytest.raises(ConnectionError, match='is the key that of this service'):
        client_of(service, b'x' * 32).shutdown()
    assert client_of(service).wait_for_dispatcher_registration(0, 5) == 'grpc://a:1'
    assert not service._server.state._is_over


def test_a_message_cannot_be_sent_again(service):
    """Its digest is of one connection's nonce."""
    body = json.dumps({'call': 'shutdown', 'arguments': []}).encode()
    with connection_to(service) as first:
        greeting = first.recv(1000)
        nonce = greeting[-32:]
    with connection_to(service) as second:
        assert second.recv(1000)[-32:] != nonce
        second.sendall(struct.pack('>I', len(body)) + secret.compute_digest(KEY, b'request' + nonce + body) + body)
        assert second.recv(1000) == b''
    assert not service._server.state._is_over


@pytest.mark.parametrize('data', [b'GET / HTTP/1.0\r\n\r\n' + b'x' * 64, struct.pack('>I', 1 << 31) + b'x' * 64, b'\x80\x04\x95' + b'x' * 99])
def test_other_bytes_are_not_parsed(service, data):
    with connection_to(service) as stream:
        stream.recv(1000)
        stream.sendall(data)
        try:
            stream.shutdown(socket.SHUT_WR)
            assert stream.recv(1000) == b''
        except OSError as error:  # the service has left already
            assert error.errno in (errno.ECONNRESET, errno.ENOTCONN), error
    client_of(service).register_dispatcher(0, 'still there')


def test_a_reply_without_the_key_is_refused():
    """What answers at an address that another network has, too."""
    with socket.create_server(('127.0.0.1', 0)) as listener:
        def answer():
            stream, _ = listener.accept()
            with stream:
                stream.sendall(b'hvd compute service 1\n' + b'n' * 32)
                stream.recv(1000)
                body = b'{"value": "grpc://mallory:1"}'
                stream.sendall(struct.pack('>I', len(body)) + secret.compute_digest(b'x' * 32, b'reply' + b'n' * 32 + body) + body)
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConnectionError, match='does not match the key'):
            ComputeClient({'lo': [listener.getsockname()]}, KEY).wait_for_dispatcher_registration(0, 5)
        thread.join()


def test_an_address_that_does_not_answer_is_left_for_the_next(service):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        closed = listener.getsockname()
    addresses = {'other': [closed], **service.addresses()}
    client = ComputeClient(addresses, KEY)
    client.register_dispatcher(0, 'a')
    assert client.wait_for_dispatcher_registration(0, 5) == 'a'


def test_shutdown_of_the_server_ends_its_port():
    service = ComputeService(1, 1, KEY)
    client = client_of(service)
    client.register_dispatcher(0, 'a')
    begun = time.monotonic()
    service.shutdown()
    with pytest.raises(ConnectionError):
        client_of(service).register_dispatcher(0, 'a')
    assert time.monotonic() - begun < 60
