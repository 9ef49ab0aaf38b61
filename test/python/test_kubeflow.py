"""horovod.kubeflow: reports of progress reach the server that Kubeflow Trainer names, and disturb nothing when they do not."""

import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading

import jobs
import pytest

from horovod import kubeflow

PATH = '/apis/trainer.kubeflow.org/v1alpha1/namespaces/lab/trainjobs/digits/status'
SCRIPT = 'from horovod import kubeflow; [kubeflow.report_progress(percent) for percent in (1, 50, 100)]'


def make_certificate(folder):
    if not shutil.which('openssl'):
        pytest.skip('the program openssl is not installed')
    certificate, key = str(folder / 'ca.crt'), str(folder / 'key')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj',
                    '/CN=trainer', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate], check=True, capture_output=True)
    return certificate, key


class Server:
    """A status server: what it got, and what it answers."""

    def __init__(self, certificate, key):
        self.requests = []  # (path, headers, body)
        self.answer = (200, {})
        self.came = threading.Condition()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
                code, headers = server.answer
                with server.came:
                    server.requests.append((self.path, dict(self.headers), body))
                    server.came.notify_all()
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header('Content-Length', '0')
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *unused):
                pass

        self.http = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.http.handle_error = lambda *unused: None  # a client that does not trust the certificate
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self):
        return 'https://127.0.0.1:{}{}'.format(self.http.server_port, PATH)

    def wait_for(self, count):
        with self.came:
            assert self.came.wait_for(lambda: len(self.requests) >= count, 60), self.requests
        return [body['trainerStatus'] for _, _, body in self.requests]


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp('tls'))


@pytest.fixture
def server(certificate, monkeypatch):
    made = Server(*certificate)
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture
def pod(server, certificate, tmp_path, monkeypatch):
    """The variables of a pod of a TrainJob, in this process; a reporter of its own."""
    (tmp_path / 'token').write_text('secret-1\n')
    variables = {'KUBEFLOW_TRAINER_SERVER_URL': server.url, 'KUBEFLOW_TRAINER_SERVER_CA_CERT': certificate[0],
                 'KUBEFLOW_TRAINER_SERVER_TOKEN': str(tmp_path / 'token')}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv('HOROVOD_RANK', raising=False)
    monkeypatch.setattr(kubeflow, '_only', None)
    yield variables
    if kubeflow._only is not None and kubeflow._only._thread is not None:
        kubeflow._only._end()


def test_the_server_gets_what_the_script_reports(pod, server):
    assert kubeflow.report_progress(45.9, remaining_s=12.1, metrics={'loss': 0.25, 'epoch': 2})
    [status] = server.wait_for(1)
    path, headers, body = server.requests[0]
    assert path == PATH and headers['Authorization'] == 'Bearer secret-1' and headers['Content-Type'] == 'application/json'
    assert list(body) == ['trainerStatus'] and status.pop('lastUpdatedTime').endswith('Z')
    assert status == {'progressPercentage': 45, 'estimatedRemainingSeconds': 13,
                      'metrics': [{'name': 'loss', 'value': '0.25'}, {'name': 'epoch', 'value': '2'}]}


def test_between_two_requests_the_newest_report_waits_and_the_end_sends_it(pod, server, monkeypatch):
    monkeypatch.setattr(kubeflow, '_APART_S', 3600)
    assert kubeflow.report_progress(0)
    server.wait_for(1)
    assert all([kubeflow.report_progress(percent) for percent in range(1, 101)])
    kubeflow._only._end()
    assert [status['progressPercentage'] for status in server.wait_for(2)] == [0, 100]


def test_a_token_that_is_renewed_is_read_again(pod, server, monkeypatch, tmp_path):
    monkeypatch.setattr(kubeflow, '_APART_S', 0.01)
    kubeflow.report_progress(1)
    server.wait_for(1)
    (tmp_path / 'token').write_text('secret-2')
    kubeflow.report_progress(2)
    server.wait_for(2)
    assert [headers['Authorization'] for _, headers, _ in server.requests] == ['Bearer secret-1', 'Bearer secret-2']


def test_rank_0_alone_reports(pod, server, monkeypatch):
    monkeypatch.setenv('HOROVOD_RANK', '1')
    assert kubeflow.report_progress(1) is False and kubeflow._only is None
    monkeypatch.setenv('HOROVOD_RANK', '0')
    assert kubeflow.report_progress(2) is True
    assert server.wait_for(1)[0]['progressPercentage'] == 2


def test_outside_of_a_train_job_it_does_nothing(pod, monkeypatch):
    monkeypatch.delenv('KUBEFLOW_TRAINER_SERVER_URL')
    assert kubeflow.report_progress(1) is False and kubeflow._only is None


def test_the_token_is_sent_by_https_alone(pod, server, monkeypatch, capfd):
    monkeypatch.setenv('KUBEFLOW_TRAINER_SERVER_URL', server.url.replace('https', 'http'))
    assert kubeflow.report_progress(1) is False and kubeflow.report_progress(2) is False
    assert capfd.readouterr().err.count('is no address of https') == 1 and server.requests == []


def complaint(capfd, server=None, count=0):
    """What stands on stderr once the reporter has ended."""
    kubeflow._only._end()
    assert server is None or len(server.requests) == count
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith('hvdrun: progress is not reported to Kubeflow Trainer, because '), lines
    return lines[0]


def test_the_token_does_not_follow_to_another_address(pod, server, capfd):
    server.answer = (307, {'Location': server.url + '/elsewhere'})
    assert kubeflow.report_progress(1)
    server.wait_for(1)
    assert 'answers 307' in complaint(capfd, server, 1)


def test_a_server_that_refuses_is_said_once_and_the_next_report_is_tried(pod, server, monkeypatch, capfd):
    monkeypatch.setattr(kubeflow, '_APART_S', 0.01)
    server.answer = (403, {})
    for percent in (1, 2):
        kubeflow.report_progress(percent)
        server.wait_for(percent)
    assert server.url + ' answers 403' in complaint(capfd, server, 2)


def test_a_server_with_another_certificate_gets_no_token(pod, server, monkeypatch, tmp_path, capfd):
    (tmp_path / 'other').mkdir()
    monkeypatch.setenv('KUBEFLOW_TRAINER_SERVER_CA_CERT', make_certificate(tmp_path / 'other')[0])
    assert kubeflow.report_progress(1)
    assert 'certificate verify failed' in complaint(capfd, server, 0)


@pytest.mark.parametrize('missing, reason', [('token', 'No such file'), ('variable', 'KUBEFLOW_TRAINER_SERVER_TOKEN is not set'),
                                             ('server', 'Connection refused')])
def test_what_is_missing_is_said(pod, server, monkeypatch, tmp_path, capfd, missing, reason):
    if missing == 'token':
        (tmp_path / 'token').unlink()
    elif missing == 'variable':
        monkeypatch.delenv('KUBEFLOW_TRAINER_SERVER_TOKEN')
    else:
        monkeypatch.setenv('KUBEFLOW_TRAINER_SERVER_URL', 'https://127.0.0.1:1/status')
    assert kubeflow.report_progress(1)
    assert reason in complaint(capfd)


@pytest.mark.parametrize('arguments', [{'percent': -1}, {'percent': 100.1}, {'percent': float('nan')}, {'remaining_s': -1},
                                       {'remaining_s': float('inf')}, {'metrics': {'': 1}}, {'metrics': {'loss': 'low'}}])
def test_what_is_no_progress_is_refused_everywhere(arguments):
    with pytest.raises(ValueError):
        kubeflow.report_progress(**arguments)


def test_the_last_report_arrives_although_the_script_ends(pod, server):
    subprocess.run([sys.executable, '-c', SCRIPT], env=jobs.environment(**pod), check=True, timeout=60)
    sent = [body['trainerStatus']['progressPercentage'] for _, _, body in server.requests]
    assert sent[-1] == 100 and sent == sorted(sent)


def test_ranks_of_hvdrun_report_once(pod, server):
    if jobs.find_runtime() is None or jobs.find_hvdrun() is None:
        pytest.skip('libhvd.so or hvdrun is not built')
    result = jobs.run([jobs.find_hvdrun(), '-np', '3', sys.executable, '-c', SCRIPT.replace('(1, 50, 100)', '(100,)')], 60, **pod)
    assert result.returncode == 0, str(result)
    assert [status['progressPercentage'] for status in server.wait_for(1)] == [100]
    assert os.environ['KUBEFLOW_TRAINER_SERVER_TOKEN'] not in result.output
