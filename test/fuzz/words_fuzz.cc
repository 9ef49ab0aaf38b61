// Any bytes as words between leaders and coordinator: refused, or words that encode to the same bytes.
#include "runtime/backends/hosts/words.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

// A status says its code and text, and an ok one or an unknown code says less than it read.
bool HasStatus(const Words& words) {
  return std::holds_alternative<ReadyWords>(words) || std::holds_alternative<EndWords>(words);
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  ReadyWords ready;
  ready.ticket = 1;
  ready.domain = 2;
  ready.ranks = {0, 3};
  ready.collective = Collective::kAlltoall;
  ready.name = "name";
  ready.detail = "detail";
  ready.joined = {3};
  ready.fusion_key = 5;
  ready.parts = {{100, {1, 2}}, {0, {}}};
  ready.failure = Mismatch("they differ");
  WriteSeeds(*argc, *argv,
             {EncodeWords(ready), EncodeWords(ReadyWords{}), EncodeWords(WithdrawWords{1, "why"}),
              EncodeWords(JoinWords{1, 2}), EncodeWords(LeaveWords{1}), EncodeWords(DoneWords{1}),
              EncodeWords(RunWords{1, {0, 2}, {0, 1}, {{1, 4, {{1, 2}, {}}}, {2, 4, {}}}}),
              EncodeWords(EndWords{1, Aborted("the end"), 2}), EncodeWords(FarewellWords{"why"}),
              EncodeWords(WaitWords{1, {2, 3}})});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Result<Words> words = DecodeWords(bytes);
  if (!words.ok()) return 0;
  const std::string again = EncodeWords(*words);
  Must(HasStatus(*words) ? DecodeWords(again).ok() : again == bytes);
  return 0;
}
