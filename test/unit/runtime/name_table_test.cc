#include "runtime/core/state/name_table.h"

#include <gtest/gtest.h>

#include <set>
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

// As an operation uses them: announced here and by the peer, then retired.
void UseOnce(NameTable& names, TensorName* name) {
  names.NumberOwn(name);
  ASSERT_TRUE(names.DefineOfPeer(1, name->own_number, name).ok());
  name->kept = true;
  names.Retire(name);
}

TEST_F(NameTableTest, ANameThatDoesNotComeAgainGivesItsNumberToTheNextOne) {
  TensorName* lasting = Make("lasting");
  UseOnce(names_, lasting);
  for (int i = 0; i < 10'000; ++i) {
    TensorName* name = Make("allreduce.noname." + std::to_string(i));
    name->once = true;
    UseOnce(names_, name);
    ASSERT_EQ(names_.All().size(), 2u) << "the last one is known until the peer uses its number";
  }
  EXPECT_EQ(lasting->own_number, 0u);
  EXPECT_EQ(names_.Find(0, "lasting"), lasting);
}

TEST_F(NameTableTest, NumbersOfSeveralNamesInFlightAreDifferent) {
  std::vector<TensorName*> names;
  for (int round = 0; round < 3; ++round) {
    names.clear();
    std::set<uint32_t> numbers;
    for (int i = 0; i < 100; ++i) {
      names.push_back(Make(std::to_string(round) + "." + std::to_string(i)));
      names.back()->once = true;
      names_.NumberOwn(names.back());
      numbers.insert(names.back()->own_number);
    }
    EXPECT_EQ(numbers.size(), 100u);
    EXPECT_EQ(*numbers.rbegin(), 99u) << "those of the round before";
    for (TensorName* name : names) names_.Retire(name);
  }
}

TEST_F(NameTableTest, TheNumberOfANameThatComesAgainGoesToAnotherWhenAllAreTaken) {
  TensorName* first = Make("0");
  names_.NumberOwn(first);
  TensorName* once = Make("once");
  once->once = true;
  names_.NumberOwn(once);
  names_.Retire(once);
  for (int i = 1; i < 4096; ++i) names_.NumberOwn(Make(std::to_string(i)));
  EXPECT_EQ(first->own_number, 0u);
  TensorName* more = Make("more");
  names_.NumberOwn(more);
  EXPECT_EQ(more->own_number, 0u);
  EXPECT_EQ(names_.Find(0, "0"), nullptr);
  EXPECT_EQ(names_.All().size(), 4096u);
}

}  // namespace
}  // namespace hvd
