#include "runtime/core/state/name_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hvd {
namespace {

class NameTableTest : public ::testing::Test {
 protected:
  NameTableTest() {
    for (ProcessSet* set : {&world_, &other_}) set->group.local = set->group.ranks = {0, 1};
    other_.group.id = 1;
  }
  TensorName* Make(const std::string& text, ProcessSet* set = nullptr) {
    if (set == nullptr) set = &world_;
    return names_.Add(set->group.id, set, text);
  }
  TensorName* Own(std::string_view text, int32_t domain = 0) {
    return names_.FindOwn(domain, text);
  }

  ProcessSet world_, other_;
  NameTable names_{2};
};

TEST_F(NameTableTest, TellsNamesOfEveryLengthApart) {
  std::vector<TensorName*> made;
  std::string text;
  for (int length = 1; length <= 40; ++length) {
    text += static_cast<char>('a' + length % 26);
    made.push_back(Make(text));
  }
  text.clear();
  for (int length = 1; length <= 40; ++length) {
    text += static_cast<char>('a' + length % 26);
    EXPECT_EQ(names_.Find(0, text), made[length - 1]) << length;
    EXPECT_EQ(names_.Find(1, text), nullptr) << length;
  }
}

TEST_F(NameTableTest, FindsOwnNamesInAnyOrder) {
  TensorName* a = Make("a");
  TensorName* b = Make("b");
  TensorName* c = Make("c");
  TensorName* other_a = Make("a", &other_);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(Own("a"), a);
    EXPECT_EQ(Own("b"), b);
    EXPECT_EQ(Own("b"), b);
    EXPECT_EQ(Own("nobody's"), nullptr);
    EXPECT_EQ(Own("c"), c);
    EXPECT_EQ(Own("a", 1), other_a);
    EXPECT_EQ(Own("b", 1), nullptr);
  }
  EXPECT_EQ(Own("c"), c);
  EXPECT_EQ(Own("b"), b);
  EXPECT_EQ(Own("a"), a);
  EXPECT_EQ(Own("b"), b);
}

TEST_F(NameTableTest, AForgottenNameIsNotFoundByItsPlaceInTheOrder) {
  for (const char* text : {"a", "b", "c"}) Make(text);
  for (int step = 0; step < 2; ++step) {
    for (const char* text : {"a", "b", "c"}) ASSERT_NE(Own(text), nullptr);
  }
  Own("a");
  names_.ForgetIfUnused(names_.Find(0, "b"));
  EXPECT_EQ(Own("b"), nullptr);
  TensorName* again = Make("b");
  Own("a");
  EXPECT_EQ(Own("b"), again);
  names_.ForgetIfUnused(again);  // the last one found
  EXPECT_NE(Own("c"), nullptr);
}

TEST_F(NameTableTest, ANameOfARemovedSetIsNotThatOfTheNextSetWithItsNumber) {
  TensorName* former = Make("x", &other_);
  ++former->references;  // a number still stands for it
  Own("x", 1);
  Own("x", 1);
  names_.Detach(&other_);
  EXPECT_EQ(Own("x", 1), nullptr);
  TensorName* now = Make("x", &other_);
  EXPECT_EQ(Own("x", 1), now);
}

}  // namespace
}  // namespace hvd
