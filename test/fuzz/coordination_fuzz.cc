// Any bytes as words between leaders and coordinator: refused, or words that encode to the same
// bytes.
#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

// A status says its code and text, and an ok one or an unknown code says less than it read.
bool HasStatus(const Coordination& words) {
  return std::holds_alternative<ReadyMessage>(words) || std::holds_alternative<EndMessage>(words) ||
         std::holds_alternative<AgreeMessage>(words) ||
         std::holds_alternative<OfferMessage>(words) ||
         std::holds_alternative<EarlyOfferMessage>(words);
}

std::string BytesOf(const Coordination& message) {
  return std::string(EncodeCoordination(message).view());
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  ReadyMessage ready;
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
  ReadyMessage agree = ready;
  agree.note = "note";
  agree.participants = 3;
  ReadyMessage offer = ready;
  offer.sum = "sum";
  WriteSeeds(
      *argc, *argv,
      {BytesOf(ready), BytesOf(ReadyMessage{}), BytesOf(WithdrawMessage{1, "why"}),
       BytesOf(JoinMessage{1, 2}), BytesOf(LeaveMessage{1}), BytesOf(DoneMessage{1}),
       BytesOf(RunMessage{1, {0, 2}, {{1, 4, {{1, 2}, {}}}, {2, 4, {}}}, {}, {}, {512, 4, 2}}),
       BytesOf(EndMessage{1, Aborted("the end"), 2}), BytesOf(AbortNotice{"why"}),
       BytesOf(WaitMessage{1, {2, 3}}), BytesOf(AgreeMessage{agree}),
       BytesOf(TurnMessage{{1, {}, {{1, 4, {}}}, {2, 3}, {"note"}}}), BytesOf(OfferMessage{offer}),
       BytesOf(EarlyOfferMessage{offer}), BytesOf(RecallMessage{1}), BytesOf(RecalledMessage{1}),
       BytesOf(SumsMessage{{1, {}, {{1, 4, {}}}, {}, {}, {}, {"", "sum"}}})});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MessageBytes bytes(std::string(reinterpret_cast<const char*>(data), size));
  Result<Coordination> words = DecodeCoordination(bytes);
  if (!words.ok()) return 0;
  const MessageBytes again = EncodeCoordination(*words);
  Must(HasStatus(*words) ? DecodeCoordination(again).ok() : again == bytes);
  return 0;
}
