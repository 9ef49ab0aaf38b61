#include "launcher/output/line_keeper.h"

#include <gtest/gtest.h>

#include <utility>

namespace hvd {
namespace {

using std::chrono::milliseconds;

class Shown {
 public:
  std::string Add(uint32_t rank, std::string_view bytes) {
    keeper_.Add(out_, {&rank, 1}, bytes, now_);
    return std::exchange(text_, {});
  }
  std::string AddToStderr(uint32_t rank, std::string_view bytes) {
    keeper_.Add(err_, {&rank, 1}, bytes, now_);
    return std::exchange(text_, {});
  }
  std::string After(Duration time) {
    now_ += time;
    if (const auto due = keeper_.deadline(); due && *due <= now_) keeper_.Due(now_);
    return std::exchange(text_, {});
  }
  std::string Finish() {
    keeper_.Finish();
    return std::exchange(text_, {});
  }
  bool waits() const { return keeper_.deadline().has_value(); }

 private:
  LineKeeper::Show ShowAs(const char* name) {
    return [this, name](std::span<const uint32_t> ranks, std::string_view bytes) {
      text_ += name + std::to_string(ranks[0]) + "(" + std::string(bytes) + ")";
    };
  }
  std::string text_;
  LineKeeper::Show out_ = ShowAs(""), err_ = ShowAs("e");
  LineKeeper keeper_;
  TimePoint now_{std::chrono::hours(1)};
};

TEST(LineKeeper, ARankInsideOfALineFinishesIt) {
  Shown shown;
  EXPECT_EQ(shown.Add(0, "aa"), "0(aa)");
  EXPECT_EQ(shown.Add(1, "b\n"), "");
  EXPECT_EQ(shown.Add(2, "c"), "");
  EXPECT_EQ(shown.Add(0, "aa"), "0(aa)");
  EXPECT_EQ(shown.Add(2, "c\n"), "");
  EXPECT_EQ(shown.AddToStderr(0, "e\n"), "") << "another stream of the same rank on one screen";
  EXPECT_EQ(shown.Add(0, "\n"), "0(\n)1(b\n)2(c)2(c\n)e0(e\n)");
  EXPECT_FALSE(shown.waits());
}

TEST(LineKeeper, TheNextOneMayBeInsideOfALineToo) {
  Shown shown;
  EXPECT_EQ(shown.Add(0, "a"), "0(a)");
  EXPECT_EQ(shown.Add(1, "b"), "");
  EXPECT_EQ(shown.Add(2, "c\n"), "");
  EXPECT_EQ(shown.Add(0, "\n"), "0(\n)1(b)");
  EXPECT_EQ(shown.Add(2, "d\n"), "");
  EXPECT_EQ(shown.Add(1, "\n"), "1(\n)2(c\n)2(d\n)");
}

TEST(LineKeeper, NobodyIsWaitedForLong) {
  Shown shown;
  EXPECT_EQ(shown.Add(0, "(Pdb) "), "0((Pdb) )");
  EXPECT_FALSE(shown.waits()) << "no other has anything to show";
  shown.After(std::chrono::hours(1));
  EXPECT_EQ(shown.Add(1, "b\n"), "");
  EXPECT_EQ(shown.After(Duration::zero()), "1(b\n)") << "a prompt stays open";
  EXPECT_EQ(shown.Add(0, "more"), "0(more)");
  EXPECT_EQ(shown.Add(1, "b\n"), "");
  EXPECT_EQ(shown.After(milliseconds(199)), "");
  EXPECT_EQ(shown.After(milliseconds(1)), "1(b\n)");
}

TEST(LineKeeper, ALineWithoutAnEndDoesNotStarveOthers) {
  Shown shown;
  EXPECT_EQ(shown.Add(0, "a"), "0(a)");
  EXPECT_EQ(shown.Add(1, "b\n"), "");
  for (int i = 0; i < 19; ++i) {
    EXPECT_EQ(shown.After(milliseconds(100)), "");
    EXPECT_EQ(shown.Add(0, "a"), "0(a)");
  }
  EXPECT_EQ(shown.After(milliseconds(100)), "1(b\n)");
}

TEST(LineKeeper, HeldOutputIsBounded) {
  Shown shown;
  const std::string much(size_t{1} << 20, 'x');
  EXPECT_EQ(shown.Add(0, "a"), "0(a)");
  size_t held = 0;
  while (shown.Add(1, much + "\n").empty()) ++held;
  EXPECT_EQ(held, LineKeeper::kMostHeld / (much.size() + 1));
  EXPECT_FALSE(shown.waits());
}

TEST(LineKeeper, NothingIsLostAtTheEnd) {
  Shown shown;
  EXPECT_EQ(shown.Add(0, "a"), "0(a)");
  EXPECT_EQ(shown.Add(1, "b"), "");
  EXPECT_EQ(shown.Add(2, "c"), "");
  EXPECT_EQ(shown.Finish(), "1(b)2(c)");
}

TEST(LineKeeper, UpdatesOfAProgressBarAreLines) {
  Shown shown;
  EXPECT_EQ(shown.Add(0, "10 %\r"), "0(10 %\r)");
  EXPECT_EQ(shown.Add(1, "b\n"), "1(b\n)");
}

}  // namespace
}  // namespace hvd
