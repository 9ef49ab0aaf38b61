// What an agent keeps for a driver that takes over.
#include <gtest/gtest.h>

#include <string>

#include "launcher/agent/driver_connection.h"

namespace hvd {
namespace {

constexpr auto kKeptOut = OutputStream::kStdout, kKeptErr = OutputStream::kStderr;

std::string Text(const KeptOutput& kept) {
  std::string text;
  kept.ForEach([&](uint32_t rank, OutputStream stream, std::string_view bytes) {
    text +=
        std::to_string(rank) + (stream == kKeptOut ? "out " : "err ") + std::string(bytes) + "|";
  });
  return text;
}

TEST(KeptOutput, KeepsNothingUnlessItIsToBeKept) {
  KeptOutput kept;
  kept.Add(0, kKeptOut, "lost", "");
  EXPECT_EQ(kept.bytes(), 0U);
  kept.Enable();
  kept.Add(0, kKeptOut, "ke", "pt");
  EXPECT_EQ(Text(kept), "0out kept|");
}

TEST(KeptOutput, GivesWhatWasNotPrintedInItsOrder) {
  KeptOutput kept;
  kept.Enable();
  kept.Add(0, kKeptOut, "one\n", "");
  kept.Add(1, kKeptErr, "two\n", "");
  kept.Add(0, kKeptOut, "three\n", "");
  kept.NotePrinted({1, kKeptErr, 4});
  EXPECT_EQ(Text(kept), "0out one\n|0out three\n|");
  EXPECT_EQ(kept.bytes(), 14U) << "an older one is not printed yet";
  kept.NotePrinted({0, kKeptOut, 6});
  EXPECT_EQ(Text(kept), "0out ree\n|");
  EXPECT_EQ(kept.bytes(), 6U);
  kept.NotePrinted({0, kKeptOut, 2});
  EXPECT_EQ(Text(kept), "0out ree\n|") << "an older place says nothing new";
  kept.NotePrinted({0, kKeptOut, 10});
  EXPECT_EQ(Text(kept), "");
  EXPECT_EQ(kept.bytes(), 0U);
}

TEST(KeptOutput, APlaceBeyondAllThatWasPrintedIsNoPlace) {
  KeptOutput kept;
  kept.Enable();
  kept.NotePrinted({0, kKeptOut, 1000});
  kept.Add(0, kKeptOut, "kept", "");
  EXPECT_EQ(Text(kept), "0out kept|");
}

}  // namespace
}  // namespace hvd
