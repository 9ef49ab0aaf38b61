// Any bytes as a view of a job or the head of a ring: refused, or what comes
// out says the same again.
#include "launcher/live/view_json.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  JobView view;
  view.job = "0123456789abcdef";
  view.ranks.resize(1);
  view.ranks[0].rates.emplace();
  view.ranks[0].last_submitted = "grad";
  WriteSeeds(*argc, *argv,
             {ViewJson(view), RingHeadJson({}), RingHeadJson({.end = true, .trouble = "x"})});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto view = ParseViewJson(bytes); view.ok()) {
    const std::string line = ViewJson(*view);
    auto again = ParseViewJson(line);
    Must(again.ok() && ViewJson(*again) == line);
  }
  if (auto head = ParseRingHead(bytes); head.ok()) Must(ParseRingHead(RingHeadJson(*head)).ok());
  return 0;
}
