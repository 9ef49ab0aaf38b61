#include "launcher/external/adopt/http_store.h"

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <memory>
#include <utility>

#include "discovery/words.h"
#include "runtime/base/clock.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr Duration kDeadline = std::chrono::seconds(10);
constexpr size_t kMaxHead = size_t{16} * 1024;
constexpr int kOk = 200, kFirstError = 300, kNotFound = 404;

// Escapes names so that they stay one path element.
std::string Escaped(std::string_view text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string escaped;
  for (unsigned char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      escaped += static_cast<char>(c);
    } else {
      escaped.append(1, '%').append(1, kHex[c >> 4]).append(1, kHex[c & 15]);
    }
  }
  return escaped;
}

Status TooLong() { return InvalidArgument("is too long"); }

bool SameName(std::string_view a, std::string_view b) { return Lowered(a) == Lowered(b); }

}  // namespace

Result<HttpReply> ParseHttpReply(std::string_view bytes) {
  const Status no_http = InvalidArgument("an answer that is not HTTP");
  size_t head_end = bytes.find("\r\n\r\n");
  if (!bytes.starts_with("HTTP/1.") || head_end == std::string_view::npos) return no_http;
  std::string_view head = bytes.substr(0, head_end), body = bytes.substr(head_end + 4);
  std::string_view first = head.substr(0, head.find("\r\n"));
  HttpReply reply;
  std::optional<size_t> code =
      first.size() >= 12 && first[8] == ' ' ? ParseWhole<size_t>(first.substr(9, 3)) : std::nullopt;
  if (!code) return no_http;
  reply.code = static_cast<int>(*code);
  while (!head.empty()) {
    std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(head.size(), line.size() + 2));
    size_t colon = line.find(':');
    if (colon == std::string_view::npos || !SameName(line.substr(0, colon), "Content-Length"))
      continue;
    std::optional<size_t> length = ParseWhole<size_t>(Trimmed(line.substr(colon + 1)));
    if (!length || *length > body.size()) return InvalidArgument("an HTTP answer that was cut off");
    body = body.substr(0, *length);
  }
  reply.body = body;
  return reply;
}

std::string HttpRequest(std::string_view method, const std::string& server, std::string_view scope,
                        std::string_view key, std::string_view value) {
  std::string request(method);
  request += " /" + Escaped(scope) + "/" + Escaped(key) + " HTTP/1.0\r\nHost: " + server + "\r\n";
  if (method == "PUT") request += Format("Content-Length: {}\r\n", value.size());
  return request + "\r\n" + std::string(value);
}

// One request, kept alive by its own handlers.
class HttpStore::Request : public std::enable_shared_from_this<HttpStore::Request> {
 public:
  Request(asio::io_context& io, std::string bytes, size_t most)
      : resolver_(io), socket_(io), timer_(io), bytes_(std::move(bytes)), most_(most) {}

  void Begin(const std::string& server, std::function<void(Result<std::string>)> done) {
    done_ = std::move(done);
    timer_.expires_after(kDeadline);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error) self->End(Aborted("no answer within 10 s"));
    });
    size_t colon = server.rfind(':');
    std::string host = server.substr(0, colon), port = server.substr(colon + 1);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    resolver_.async_resolve(
        host, port,
        [self = shared_from_this()](const asio::error_code& error,
                                    const asio::ip::tcp::resolver::results_type& found) {
          if (error) return self->Fail(error);
          self->Connect(found);
        });
  }
  std::string local_address() const { return local_address_; }

 private:
  void Connect(const asio::ip::tcp::resolver::results_type& found) {
    asio::async_connect(
        socket_, found,
        [self = shared_from_this()](const asio::error_code& error, const asio::ip::tcp::endpoint&) {
          if (error) return self->Fail(error);
          asio::error_code ignored;
          self->local_address_ = self->socket_.local_endpoint(ignored).address().to_string();
          self->Write();
        });
  }
  void Write() {
    asio::async_write(socket_, asio::buffer(bytes_),
                      [self = shared_from_this()](const asio::error_code& error, size_t) {
                        if (error) return self->Fail(error);
                        self->Read();
                      });
  }
  void Read() {
    socket_.async_read_some(asio::buffer(piece_),
                            [self = shared_from_this()](const asio::error_code& error, size_t n) {
                              self->answer_.append(self->piece_.data(), n);
                              if (error == asio::error::eof)
                                return self->End(std::move(self->answer_));
                              if (error) return self->Fail(error);
                              if (self->answer_.size() > self->most_) return self->End(TooLong());
                              self->Read();
                            });
  }
  void Fail(const asio::error_code& error) { End(Aborted(error.message())); }
  void End(Result<std::string> outcome) {
    if (!done_) return;
    timer_.cancel();
    resolver_.cancel();
    asio::error_code ignored;
    socket_.close(ignored);
    std::exchange(done_, nullptr)(std::move(outcome));
  }

  asio::ip::tcp::resolver resolver_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  std::string bytes_, answer_, local_address_;
  const size_t most_;
  std::array<char, 4096> piece_{};
  std::function<void(Result<std::string>)> done_;
};

HttpStore::HttpStore(asio::io_context& io, std::string server, std::string scope)
    : io_(io), server_(std::move(server)), scope_(std::move(scope)) {}

void HttpStore::Ask(std::string bytes, size_t most, std::function<void(Result<HttpReply>)> done) {
  auto request = std::make_shared<Request>(io_, std::move(bytes), most + kMaxHead);
  auto* raw = request.get();  // alive while its handler runs
  request->Begin(server_, [this, raw, most, done = std::move(done)](Result<std::string> answer) {
    if (!raw->local_address().empty()) local_address_ = raw->local_address();
    if (answer.status().code() == Code::kInvalidArgument) return done(answer.status());
    Result<HttpReply> reply =
        answer.ok() ? ParseHttpReply(*answer) : Result<HttpReply>(answer.status());
    if (reply.ok() && reply->body.size() > most) return done(TooLong());
    if (reply.ok()) return done(std::move(reply));
    done(Aborted("the key-value server at " + server_ + ": " + reply.status().message()));
  });
}

void HttpStore::Get(const std::string& key, size_t most_bytes, OnGet done) {
  Ask(HttpRequest("GET", server_, scope_, key, ""), most_bytes,
      [this, done](Result<HttpReply> reply) {
        if (!reply.ok()) return done(reply.status());
        if (reply->code == kNotFound) return done(std::optional<std::string>());
        if (reply->code == kOk) return done(std::optional(std::move(reply->body)));
        done(Aborted(
            Format("the key-value server at {} answered GET with code {}", server_, reply->code)));
      });
}

void HttpStore::Put(const std::string& key, std::string_view value, OnPut done) {
  Ask(HttpRequest("PUT", server_, scope_, key, value), kMaxHead,
      [this, done](Result<HttpReply> reply) {
        if (!reply.ok()) return done(reply.status());
        if (reply->code >= kOk && reply->code < kFirstError) return done(Status::Ok());
        done(Aborted(
            Format("the key-value server at {} answered PUT with code {}", server_, reply->code)));
      });
}

}  // namespace hvd
