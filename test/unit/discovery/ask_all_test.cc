#include "discovery/ask_all.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "test/support/deadline.h"

namespace hvd {
namespace {

const Duration kLong = kDeadline;

TEST(NamesThat, AsksAboutEachNameOnce) {
  auto asked = std::make_shared<std::pair<std::mutex, std::vector<std::string>>>();
  auto ask = [asked](const std::string& name) {
    std::lock_guard lock(asked->first);
    asked->second.push_back(name);
    return name.size() > 1;
  };
  EXPECT_EQ(NamesThat({"bb", "a", "bb", "cc"}, ask, kLong), (std::set<std::string>{"bb", "cc"}));
  std::sort(asked->second.begin(), asked->second.end());
  EXPECT_EQ(asked->second, (std::vector<std::string>{"a", "bb", "cc"}));
  EXPECT_TRUE(NamesThat({}, ask, kLong).empty());
}

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool open = false;
};

TEST(NamesThat, AsksAllAtOnce) {
  auto gate = std::make_shared<Gate>();
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back(std::to_string(i));
  auto all = NamesThat(
      names,
      [gate](const std::string&) {
        std::unique_lock lock(gate->mutex);
        ++gate->inside;
        gate->changed.notify_all();
        // One after the other would wait here for ever.
        return gate->changed.wait_for(lock, kLong, [&] { return gate->inside == 8; });
      },
      kLong);
  EXPECT_EQ(all.size(), names.size());
}

TEST(NamesThat, WhoDoesNotAnswerInTimeIsLeftOut) {
  auto gate = std::make_shared<Gate>();
  auto ask = [gate](const std::string& name) {
    if (name == "quick") return true;
    std::unique_lock lock(gate->mutex);
    gate->changed.wait_for(lock, kLong, [&] { return gate->open; });
    return true;
  };
  EXPECT_EQ(NamesThat({"slow", "quick"}, ask, std::chrono::milliseconds(50)),
            std::set<std::string>{"quick"});
  std::lock_guard lock(gate->mutex);
  gate->open = true;
  gate->changed.notify_all();
}

}  // namespace
}  // namespace hvd
