// Any bytes as requests to the rendezvous of stock Horovod, one after another: each is answered,
// and the values kept stay within their limit.
#include "launcher/external/stock/stock_rendezvous.h"
#include "launcher/live/http/http_request.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;
constexpr size_t kMostBody = 1024;
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  WriteSeeds(*argc, *argv,
             {"GET /global/0 HTTP/1.1\r\nHost: a\r\n\r\n",
              "PUT /global/0 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
              "DELETE /cross_0/0 HTTP/1.0\r\n\r\n", "GET /rank_and_size/a:0 HTTP/1.1\r\n\r\n",
              "PUT /worker_addresses/a%3a0 HTTP/1.1\r\nContent-Length: 0\r\n\r\n"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  StockRendezvous rendezvous;
  rendezvous.Begin({{"a", {0, 0, 0, 1, 0, 1}}});
  while (true) {
    const HttpRequest request = ParseHttpRequest(bytes, kMostBody);
    if (request.code == 0) Must(bytes.size() < kMostHeadBytes + kMostBody);
    if (request.code != kHttpOk) break;
    Must(request.body.size() <= kMostBody);
    int answers = 0;
    rendezvous.Handle(request, [&](const HttpAnswer& answer) {
      ++answers;
      Must(!HttpAnswerText(answer).empty());
    });
    Must(answers == 1);
    const char* body_end = request.body.data() + request.body.size();
    bytes.remove_prefix(static_cast<size_t>(body_end - bytes.data()));
  }
  return 0;
}
