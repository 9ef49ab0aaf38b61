// Parses HTTP/1.0 and 1.1 requests and formats answers. Pure.
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

// The texts are views into the parsed bytes.
struct HttpRequest {
  // 0: more bytes are needed. kHttpOk: complete. Otherwise the error status to answer.
  int code = 0;
  std::string_view method = {}, target = {};  // "GET", "/metrics?x=1"
  std::string_view body = {};
};

// `bytes`: everything received so far. A head beyond kMostHeadBytes or a body beyond `most_body` is
// refused as soon as that is known.
HttpRequest ParseHttpRequest(std::string_view bytes, size_t most_body);

// "a%20b" is "a b"; nothing for a % that is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecoded(std::string_view text);

struct HttpAnswer {
  int code = kHttpOk;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};          // of kHttpOk; errors get the text of their code
  bool head_only = false;         // the answer to HEAD
  std::string_view methods = {};  // of kHttpNotAllowed: "GET, HEAD"
};
// The complete answer, after which the connection is closed.
std::string HttpAnswerText(const HttpAnswer& answer);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_HTTP_HTTP_REQUEST_H_
