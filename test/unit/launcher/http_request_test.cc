// Requests of HTTP: the parts that are read, and the answers of the port for metrics.
#include "launcher/live/http/http_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/live/metrics_server.h"

namespace hvd {
namespace {

constexpr size_t kMostBody = 10;

int CodeOf(std::string_view bytes) { return ParseHttpRequest(bytes, kMostBody).code; }

int MetricsCodeOf(std::string_view bytes) {
  const HttpRequest request = ParseHttpRequest(bytes, kMostBody);
  if (request.code != kHttpOk) return request.code;
  return MetricsAnswer(request, [] { return std::string("1"); }).code;
}

TEST(HttpRequest, HasMethodTargetAndBody) {
  const HttpRequest request = ParseHttpRequest(
      "PUT /global/0 HTTP/1.1\r\nHost: a\r\ncontent-length:  3 \r\n\r\nabcdef", kMostBody);
  EXPECT_EQ(request.code, kHttpOk);
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/global/0");
  EXPECT_EQ(request.body, "abc");
  EXPECT_EQ(CodeOf("GET /a HTTP/1.0\r\n\r\n"), kHttpOk);
}

TEST(HttpRequest, OtherBytesAreABadRequest) {
  for (const char* bytes :
       {"\r\n\r\n", "GET /metrics\r\n\r\n", "GET /met rics HTTP/1.1\r\n\r\n",
        "GET /metrics SPDY\r\n\r\n", " /metrics HTTP/1.1\r\n\r\n", "\x16\x03\x01\r\n\r\n",
        "GET /a HTTP/1.1\r\nno field\r\n\r\n", "GET /a HTTP/1.1\r\n folded: 1\r\n\r\n",
        "PUT /a/b HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "PUT /a/b HTTP/1.1\r\nContent-Length:\r\n\r\n",
        "PUT /a/b HTTP/1.1\r\nContent-Length: 1x\r\n\r\n",
        "PUT /a/b HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"}) {
    EXPECT_EQ(CodeOf(bytes), kHttpBadRequest) << bytes;
  }
  EXPECT_EQ(CodeOf("GET /a HTTP/2.0\r\n\r\n"), kHttpBadVersion);
  EXPECT_EQ(CodeOf("PUT /a/b HTTP/1.1\r\n\r\n"), kHttpLengthRequired);
  EXPECT_EQ(CodeOf("PUT /a/b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), kHttpNotImplemented);
}

TEST(HttpRequest, IsReadUntilItsEnd) {
  const std::string request = "PUT /a/b HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody";
  for (size_t size = 0; size < request.size(); ++size)
    EXPECT_EQ(CodeOf(request.substr(0, size)), 0);
  EXPECT_EQ(CodeOf(request), kHttpOk);
}

TEST(HttpRequest, HasLimits) {
  EXPECT_EQ(CodeOf(std::string(kMostHeadBytes - 1, 'a')), 0);
  EXPECT_EQ(CodeOf(std::string(kMostHeadBytes, 'a')), kHttpHeadTooLarge);
  const std::string head = "GET /metrics HTTP/1.1\r\nA: ";
  EXPECT_EQ(CodeOf(head + std::string(kMostHeadBytes, 'a') + "\r\n\r\n"), kHttpHeadTooLarge);
  EXPECT_EQ(CodeOf("PUT /a/b HTTP/1.1\r\nContent-Length: 11\r\n\r\n"), kHttpBodyTooLarge);
  EXPECT_EQ(CodeOf("PUT /a/b HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
            kHttpBodyTooLarge);
}

TEST(HttpRequest, PercentsAreDecoded) {
  EXPECT_EQ(PercentDecoded("a%3a%5Fb"), "a:_b");
  for (const char* bad : {"%", "a%1", "%g0", "%0g"}) EXPECT_EQ(PercentDecoded(bad), std::nullopt);
}

TEST(HttpAnswer, SaysItsLength) {
  EXPECT_EQ(HttpAnswerText({.type = "text/x", .body = "abc"}),
            "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 3\r\nConnection: close"
            "\r\n\r\nabc");
  EXPECT_EQ(HttpAnswerText({.body = "abc", .head_only = true}).find("abc"), std::string::npos);
  EXPECT_THAT(HttpAnswerText({.code = kHttpNotAllowed, .methods = "GET, HEAD"}),
              testing::HasSubstr("Allow: GET, HEAD\r\n"));
  EXPECT_THAT(HttpAnswerText({.code = kHttpNotFound, .body = "not shown"}),
              testing::EndsWith("\r\n\r\nNot Found\n"));
}

TEST(Metrics, OnlyGetOfMetricsIsAnswered) {
  EXPECT_EQ(MetricsCodeOf("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), kHttpOk);
  EXPECT_EQ(MetricsCodeOf("HEAD /metrics HTTP/1.0\r\n\r\n"), kHttpOk);
  EXPECT_EQ(MetricsCodeOf("GET /metrics?x=1 HTTP/1.1\r\n\r\n"), kHttpOk);
  EXPECT_EQ(MetricsCodeOf("GET / HTTP/1.1\r\n\r\n"), kHttpNotFound);
  EXPECT_EQ(MetricsCodeOf("GET /metricsx HTTP/1.1\r\n\r\n"), kHttpNotFound);
  EXPECT_EQ(MetricsCodeOf("GET http://h/metrics HTTP/1.1\r\n\r\n"), kHttpNotFound);
  EXPECT_EQ(MetricsCodeOf("DELETE /metrics HTTP/1.1\r\n\r\n"), kHttpNotAllowed);
  EXPECT_EQ(MetricsCodeOf("POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\na"), kHttpNotAllowed);
}

}  // namespace
}  // namespace hvd
