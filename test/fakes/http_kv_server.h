// A key-value server as launchers of the Horovod kind have it: GET and PUT of /scope/key. One
// thread, one request at a time.
#ifndef HVD_TEST_FAKES_HTTP_KV_SERVER_H_
#define HVD_TEST_FAKES_HTTP_KV_SERVER_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/base/unique_fd.h"

namespace hvd {

class HttpKvServer {
 public:
  HttpKvServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    bool good = ::bind(listener_.get(), generic, length) == 0 &&
                ::listen(listener_.get(), SOMAXCONN) == 0 &&
                ::getsockname(listener_.get(), generic, &length) == 0;
    if (!good) return;
    server_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~HttpKvServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }

  const std::string& server() const { return server_; }
  std::map<std::string, std::string> values() {
    std::lock_guard lock(mutex_);
    return values_;
  }

 private:
  void Serve() {
    for (;;) {
      UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      std::string answer = Answer(ReadRequest(client.get()));
      for (size_t at = 0; at < answer.size();) {
        ssize_t sent = ::send(client.get(), &answer[at], answer.size() - at, MSG_NOSIGNAL);
        if (sent <= 0) break;
        at += static_cast<size_t>(sent);
      }
    }
  }
  static std::string ReadRequest(int client) {
    std::string request;
    size_t wanted = std::string::npos;
    while (request.size() < wanted) {
      char piece[4096];
      ssize_t got = ::recv(client, piece, sizeof piece, 0);
      if (got <= 0) break;
      request.append(piece, static_cast<size_t>(got));
      size_t head = request.find("\r\n\r\n");
      if (head == std::string::npos || wanted != std::string::npos) continue;
      size_t length = request.find("Content-Length: ");
      wanted = head + 4 + (length < head ? std::stoul(request.substr(length + 16)) : 0);
    }
    return request;
  }
  std::string Answer(const std::string& request) {
    std::istringstream head(request);
    std::string method, path;
    head >> method >> path;
    std::lock_guard lock(mutex_);
    if (method == "PUT") {
      values_[path] = request.substr(request.find("\r\n\r\n") + 4);
      return "HTTP/1.0 200 OK\r\n\r\n";
    }
    auto found = values_.find(path);
    if (found == values_.end()) return "HTTP/1.0 404 Not Found\r\n\r\n";
    return "HTTP/1.0 200 OK\r\nContent-Length: " + std::to_string(found->second.size()) +
           "\r\n\r\n" + found->second;
  }

  UniqueFd listener_;
  std::string server_;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;  // by path; guarded by mutex_
  std::thread thread_;
};

}  // namespace hvd

#endif  // HVD_TEST_FAKES_HTTP_KV_SERVER_H_
