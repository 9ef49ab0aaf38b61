// The messages of a sum that comes again: equal to those of the common way, byte by byte.
// negotiator_test.cc has how they are exchanged.
#include "runtime/backends/hosts/coordination/persistent_offer.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/backends/hosts/coordination/early_offer.h"

namespace hvd {
namespace {

const std::string kPart = "0123456789ab";

ReadyMessage SumReport() {
  ReadyMessage report;
  report.name = "loss";
  report.collective = Collective::kAllreduce;
  report.detail = "three numbers";
  report.fusion_key = 77;
  report.parts = {{kPart.size(), {}}};
  return report;
}

template <typename Message>
std::string MessageOf(ReadyMessage report, uint64_t ticket, std::string part) {
  report.ticket = ticket;
  report.sum = std::move(part);
  return std::string(EncodeCoordination(Message{std::move(report)}).view());
}

TEST(PersistentOffer, SaysWhatTheCommonWaySays) {
  for (size_t length : {0, 1, 2, 3, 15, 200}) {
    for (size_t bytes : {1, 4, 16, 65536}) {
      ReadyMessage report = SumReport();
      report.name = std::string(length, 'n');
      const std::string part(bytes, 'p');
      const PersistentOffer first(report, true, bytes), second(report, false, bytes);
      for (uint64_t ticket : {uint64_t{1}, uint64_t{300}, UINT64_MAX}) {
        EXPECT_EQ(first.Encode(ticket, part.data()).view(),
                  MessageOf<EarlyOfferMessage>(report, ticket, part));
        EXPECT_EQ(second.Encode(ticket, part.data()).view(),
                  MessageOf<OfferMessage>(report, ticket, part));
      }
    }
  }
}

TEST(PersistentOffer, FindsThePartOfTheOtherOne) {
  const PersistentOffer first(SumReport(), true, kPart.size());
  const PersistentOffer second(SumReport(), false, kPart.size());
  for (uint64_t ticket : {uint64_t{1}, UINT64_MAX}) {
    EXPECT_EQ(first.PartIn(MessageOf<OfferMessage>(SumReport(), ticket, kPart)), kPart);
    EXPECT_EQ(second.PartIn(MessageOf<EarlyOfferMessage>(SumReport(), ticket, kPart)), kPart);
    EXPECT_EQ(first.PartIn(second.Encode(ticket, kPart.data()).view()), kPart);
    EXPECT_EQ(second.PartIn(first.Encode(ticket, kPart.data()).view()), kPart);
  }
}

// A part that it takes settles the operation on the common way, too.
TEST(PersistentOffer, TakesNothingElse) {
  const std::vector<std::function<void(ReadyMessage&)>> changes = {
      [](ReadyMessage& report) { report.name = "lost"; },
      [](ReadyMessage& report) { report.name += "s"; },
      [](ReadyMessage& report) { report.domain = 1; },
      [](ReadyMessage& report) {
        report.ranks = {0, 1};
      },
      [](ReadyMessage& report) { report.collective = Collective::kReducescatter; },
      [](ReadyMessage& report) { report.detail = "Three numbers"; },
      [](ReadyMessage& report) { report.joined = {1}; },
      [](ReadyMessage& report) {
        report.parts = {{kPart.size(), {3}}};
      },
      [](ReadyMessage& report) { report.parts.emplace_back(); },
      [](ReadyMessage& report) { report.failure = Internal("no memory"); },
  };
  const PersistentOffer first(SumReport(), true, kPart.size());
  for (const auto& change : changes) {
    ReadyMessage other = SumReport();
    change(other);
    EXPECT_FALSE(Settles(SumReport(), kPart.size(), other, kPart.size()));
    EXPECT_EQ(first.PartIn(MessageOf<OfferMessage>(other, 5, kPart)), std::nullopt);
  }
  const std::string message = MessageOf<OfferMessage>(SumReport(), 5, kPart);
  EXPECT_EQ(first.PartIn(MessageOf<OfferMessage>(SumReport(), 5, kPart + "c")), std::nullopt);
  EXPECT_EQ(first.PartIn(MessageOf<EarlyOfferMessage>(SumReport(), 5, kPart)), std::nullopt);
  for (size_t length = 0; length < message.size(); ++length)
    EXPECT_EQ(first.PartIn(std::string_view(message).substr(0, length)), std::nullopt);
  const size_t head = message.size() - kPart.size();
  for (size_t i = 0; i < head; ++i) {
    std::string changed = message;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const bool ticket = i >= 1 && i < 9;
    EXPECT_EQ(first.PartIn(changed).has_value(), ticket) << "byte " << i;
  }
}

}  // namespace
}  // namespace hvd
