#include "launcher/job/policy/failure_kind.h"

#include <gtest/gtest.h>

#include <string>

namespace hvd {
namespace {

constexpr const char* kValueError =
    "epoch 1\n"
    "Traceback (most recent call last):\n"
    "  File \"train.py\", line 3, in <module>\n"
    "    step()\n"
    "    ^^^^^^\n"
    "ValueError: rank 3 has 17 samples at 0x7f3a9c\n";
constexpr const char* kInternalError =
    "Traceback (most recent call last):\n"
    "  File \"train.py\", line 3, in <module>\n"
    "horovod.common.exceptions.HorovodInternalError: rank 1 died\n";

std::string Raised(const std::string& line) {
  return "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n" + line + "\n";
}

TEST(ExceptionSignature, IsTheLastLineOfTheLastTracebackWithoutNumbers) {
  struct Case {
    std::string text, signature;
  };
  const Case cases[] = {
      {"", ""},
      {"Killed\n", ""},
      {"error: 3\n", ""},
      {"ValueError: no traceback\n", ""},
      {kValueError, "ValueError: rank 0 has 0 samples at 0"},
      {Raised("KeyError: 'x'") + "other words\n", "KeyError: 'x'"},
      {Raised("a.b.Error"), "a.b.Error"},
      {Raised("ValueError: a\nb: c"), "ValueError: a"},
      {Raised("KeyError: 'x'") +
           "\nDuring handling of the above exception, another exception occurred:\n\n" +
           Raised("TypeError: y"),
       "TypeError: y"},
      {"Traceback (most recent call last):\r\n  File \"a.py\"\r\nE: x\r\n", "E: x"},
      {"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n", ""},
      {"Traceback (most recent call last):\n  File \"a.py\", li\n[rank1]: words\n", ""},
  };
  for (const Case& c : cases) EXPECT_EQ(ExceptionSignature(c.text), c.signature) << c.text;
  EXPECT_LE(ExceptionSignature(Raised("E: " + std::string(10'000, 'x'))).size(), 300u);
}

TEST(FailureKind, FollowsFromWhatIsKnown) {
  using enum FailureKind;
  struct Case {
    const char* name;
    WorkerEndFacts facts;
    FailureKind kind;
  };
  const ProcessEnd kKilled{true, 9}, kExit1{false, 1}, kTerminated{true, 15};
  const std::string disagree = Raised(
      "horovod.common.exceptions.HorovodInternalError: tensor 'x': ranks disagree about its shape: "
      "rank 0 has [1], rank 1 has [2]");
  const std::string closed =
      Raised("RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:4711");
  const Case cases[] = {
      {"kill", {.end = kKilled}, kCrash},
      {"kill after a commit", {.end = kKilled, .had_committed = true}, kCrash},
      {"kill of others' survivor", {.end = kKilled, .is_consequence = true}, kConsequence},
      {"oom", {.end = kKilled, .out_of_memory = true}, kOutOfMemory},
      {"host", {.end = {}, .host_lost = true}, kHostLost},
      {"host, whatever else",
       {.end = kKilled, .out_of_memory = true, .host_lost = true},
       kHostLost},
      {"asked", {.end = kTerminated, .asked_to_leave = true}, kAskedToLeave},
      {"preempted", {.end = kTerminated, .preempted = true}, kPreempted},
      {"exit code alone", {.end = kExit1}, kCrash},
      {"exit code with words", {.end = kExit1, .last_stderr = "cannot open x\n"}, kCrash},
      {"left with 0", {.end = {}}, kCrash},
      {"raised before a commit", {.end = kExit1, .last_stderr = kValueError}, kUserError},
      {"raised once after a commit",
       {.end = kExit1, .had_committed = true, .last_stderr = kValueError},
       kCrash},
      {"a signal after a traceback", {.end = kKilled, .last_stderr = kValueError}, kCrash},
      {"asked, then raised",
       {.end = kExit1, .asked_to_leave = true, .last_stderr = kValueError},
       kAskedToLeave},
      {"peer lost", {.end = kExit1, .last_stderr = kInternalError}, kConsequence},
      {"peer lost after a commit",
       {.end = kExit1, .had_committed = true, .last_stderr = kInternalError},
       kConsequence},
      {"torch: peer lost", {.end = kExit1, .last_stderr = closed}, kConsequence},
      {"raised while others were lost",
       {.end = kExit1, .is_consequence = true, .last_stderr = kValueError},
       kConsequence},
      {"ranks disagree", {.end = kExit1, .last_stderr = disagree}, kUserError},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(FailureKinds().KindOf(c.facts), c.kind) << c.name;
  }
}

TEST(FailureKind, AnExceptionThatIsRaisedInTwoPlacesIsTheScripts) {
  FailureKinds kinds;
  const auto raise = [&](const std::string& place, const std::string& text) {
    return kinds.KindOf(
        {.end = {false, 1}, .had_committed = true, .place = place, .last_stderr = text});
  };
  EXPECT_EQ(raise("a:0", Raised("E: rank 0")), FailureKind::kCrash);
  // A bad slot, perhaps.
  EXPECT_EQ(raise("a:0", Raised("E: rank 5")), FailureKind::kCrash);
  EXPECT_EQ(raise("b:0", Raised("F: other")), FailureKind::kCrash);
  EXPECT_EQ(raise("a:1", Raised("E: rank 1")), FailureKind::kUserError);
  EXPECT_EQ(raise("b:1", Raised("F: other")), FailureKind::kUserError);
}

// The loss of a peer reads alike on all ranks.
TEST(FailureKind, AConsequenceIsNeverTheScripts) {
  FailureKinds kinds;
  for (const char* place : {"a:0", "a:1", "b:0"}) {
    EXPECT_EQ(kinds.KindOf({.end = {false, 1},
                            .had_committed = true,
                            .place = place,
                            .last_stderr = kInternalError}),
              FailureKind::kConsequence);
    EXPECT_EQ(kinds.KindOf({.end = {false, 1},
                            .is_consequence = true,
                            .had_committed = true,
                            .place = place,
                            .last_stderr = kValueError}),
              FailureKind::kConsequence);
  }
  EXPECT_EQ(
      kinds.KindOf(
          {.end = {false, 1}, .had_committed = true, .place = "c:0", .last_stderr = kValueError}),
      FailureKind::kCrash);
}

}  // namespace
}  // namespace hvd
