// Requests of HTTP/1.0 and 1.1, and answers to them. Pure.
#ifndef HVD_LAUNCHER_LIVE_HTTP_HTTP_REQUEST_H_
#define HVD_LAUNCHER_LIVE_HTTP_HTTP_REQUEST_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

inline constexpr size_t kMostHeadBytes = 8192;

// Status codes of answers.
inline constexpr int kHttpOk = 200, kHttpBadRequest = 400, kHttpNotFound = 404,
                     kHttpNotAllowed = 405, kHttpLengthRequired = 411, kHttpBodyTooLarge = 413,
                     kHttpHeadTooLarge = 431, kHttpNotImplemented = 501, kHttpBadVersion = 505,
                     kHttpNoRoom = 507;

// The texts are parts of the bytes that were read.
struct HttpRequest {
  // 0: more bytes are needed. kHttpOk: all of it is here. Otherwise the status of the answer.
  int code = 0;
  std::string_view method = {}, target = {};  // "GET", "/metrics?x=1"
  std::string_view body = {};
};

// `bytes`: all that has come so far. A head beyond kMostHeadBytes and a body beyond `most_body` are
// refused as soon as that is known.
HttpRequest ParseHttpRequest(std::string_view bytes, size_t most_body);

// "a%20b" is "a b"; nothing for a % without two hexadecimal digits behind it.
std::optional<std::string> PercentDecoded(std::string_view text);

struct HttpAnswer {
  int code = kHttpOk;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};          // of kHttpOk; others say what their code means
  bool head_only = false;         // the answer to HEAD
  std::string_view methods = {};  // of kHttpNotAllowed: "GET, HEAD"
};
// The whole answer; the connection is closed behind it.
std::string HttpAnswerText(const HttpAnswer& answer);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_HTTP_HTTP_REQUEST_H_
