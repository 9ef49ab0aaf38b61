// HttpStore: client of an HTTP key-value server, as provided by stock Horovod launchers, Ray and
// operators: GET and PUT of /scope/key. One connection per request; non-blocking, with a deadline
// per request.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_HTTP_STORE_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_HTTP_STORE_H_

#include <asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

struct HttpReply {
  int code = 0;
  std::string body;
};
// Parses a complete answer, up to the end of the connection. kInvalidArgument if malformed.
Result<HttpReply> ParseHttpReply(std::string_view bytes);
// The request for one key; `value`: for PUT. HTTP/1.0, so that the answer ends with the connection.
std::string HttpRequest(std::string_view method, const std::string& server, std::string_view scope,
                        std::string_view key, std::string_view value);

class HttpStore {
 public:
  // The value; nothing if the server has none.
  using OnGet = std::function<void(Result<std::optional<std::string>>)>;
  using OnPut = std::function<void(Status)>;

  // `server`: "address:port".
  HttpStore(asio::io_context& io, std::string server, std::string scope);

  // Handlers run from the io_context. A value above `most_bytes` is kInvalidArgument, and little
  // more than that is read; any other failure is kAborted.
  void Get(const std::string& key, size_t most_bytes, OnGet done);
  void Put(const std::string& key, std::string_view value, OnPut done);

  const std::string& server() const { return server_; }
  // The address by which this host reached the server; "" before the first answer.
  const std::string& local_address() const { return local_address_; }

 private:
  class Request;
  void Ask(std::string request, size_t most_bytes, std::function<void(Result<HttpReply>)> done);

  asio::io_context& io_;
  const std::string server_, scope_;
  std::string local_address_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_HTTP_STORE_H_
