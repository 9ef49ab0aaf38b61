#include "launcher/live/http/http_request.h"

#include <algorithm>
#include <charconv>

#include "discovery/words.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr std::string_view kLineEnd = "\r\n", kHeadEnd = "\r\n\r\n";

const char* MeaningOf(int code) {
  switch (code) {
    case kHttpOk: return "OK";
    case kHttpNotFound: return "Not Found";
    case kHttpNotAllowed: return "Method Not Allowed";
    case kHttpLengthRequired: return "Length Required";
    case kHttpBodyTooLarge: return "Content Too Large";
    case kHttpHeadTooLarge: return "Request Header Fields Too Large";
    case kHttpNotImplemented: return "Not Implemented";
    case kHttpBadVersion: return "HTTP Version Not Supported";
    case kHttpNoRoom: return "Insufficient Storage";
    default: return "Bad Request";
  }
}

HttpRequest Refused(int code) { return {.code = code}; }

bool IsVisible(char c) { return c > ' ' && c < '\x7f'; }

bool IsWord(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsVisible);
}

// "GET /metrics HTTP/1.1"
HttpRequest ParseRequestLine(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) return Refused(kHttpBadRequest);
  HttpRequest request;
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!IsWord(request.method) || !IsWord(request.target) || !version.starts_with("HTTP/"))
    return Refused(kHttpBadRequest);
  request.code = version == "HTTP/1.1" || version == "HTTP/1.0" ? kHttpOk : kHttpBadVersion;
  return request;
}

// What the header fields say about the body.
struct BodyFacts {
  int code = kHttpOk;                 // otherwise: the fields are wrong
  std::optional<size_t> length = {};  // none was given
};

BodyFacts ReadField(std::string_view line, BodyFacts facts) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsWord(line.substr(0, colon))) return {kHttpBadRequest};
  const std::string name = Lowered(line.substr(0, colon));
  if (name == "transfer-encoding") return {kHttpNotImplemented};
  if (name != "content-length") return facts;
  const std::string_view text = Trimmed(line.substr(colon + 1));
  size_t length = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, length);
  if (error == std::errc::result_out_of_range) return {kHttpBodyTooLarge};
  if (text.empty() || error != std::errc() || stop != end) return {kHttpBadRequest};
  if (facts.length && *facts.length != length) return {kHttpBadRequest};
  facts.length = length;
  return facts;
}

BodyFacts ReadFields(std::string_view fields) {
  BodyFacts facts;
  while (!fields.empty() && facts.code == kHttpOk) {
    const std::string_view line = fields.substr(0, fields.find(kLineEnd));
    fields.remove_prefix(std::min(fields.size(), line.size() + kLineEnd.size()));
    facts = ReadField(line, facts);
  }
  return facts;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

HttpRequest ParseHttpRequest(std::string_view bytes, size_t most_body) {
  const size_t end = bytes.substr(0, kMostHeadBytes).find(kHeadEnd);
  if (end == std::string_view::npos)
    return Refused(bytes.size() >= kMostHeadBytes ? kHttpHeadTooLarge : 0);
  const std::string_view line = bytes.substr(0, bytes.find(kLineEnd));
  HttpRequest request = ParseRequestLine(line);
  if (request.code != kHttpOk) return request;
  const size_t fields_at = std::min(end, line.size() + kLineEnd.size());
  const BodyFacts body = ReadFields(bytes.substr(fields_at, end - fields_at));
  if (body.code != kHttpOk) return Refused(body.code);
  const bool wants_body = request.method == "PUT" || request.method == "POST";
  if (wants_body && !body.length) return Refused(kHttpLengthRequired);
  const size_t length = body.length.value_or(0);
  if (length > most_body) return Refused(kHttpBodyTooLarge);
  const std::string_view rest = bytes.substr(end + kHeadEnd.size());
  if (rest.size() < length) return Refused(0);
  request.body = rest.substr(0, length);
  return request;
}

std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexValue(text[i + 1]), low = HexValue(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string HttpAnswerText(const HttpAnswer& answer) {
  const std::string meaning = MeaningOf(answer.code);
  const bool ok = answer.code == kHttpOk;
  const std::string body = ok ? answer.body : meaning + "\n";
  std::string text = Format("HTTP/1.1 {} {}\r\n", answer.code, meaning);
  text += "Content-Type: " + (ok ? answer.type : HttpAnswer().type) + "\r\n";
  text += Format("Content-Length: {}\r\nConnection: close\r\n", body.size());
  if (!answer.methods.empty()) text += "Allow: " + std::string(answer.methods) + "\r\n";
  text += "\r\n";
  return answer.head_only ? text : text + body;
}

}  // namespace hvd
