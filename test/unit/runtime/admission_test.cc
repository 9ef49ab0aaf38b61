#include "runtime/core/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/runtime/engine_parts.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;

class AdmissionTest : public ::testing::Test {
 protected:
  // A tensor with memory, as the caller gives it.
  RequestSpec Sum(std::string_view name, ReduceOp op = ReduceOp::kSum) {
    RequestSpec spec = TensorOf(Collective::kAllreduce, name, shape_);
    spec.op = op;
    spec.tensor.input = memory_.data();
    spec.tensor.output = memory_.data();
    return spec;
  }
  Operation* Admitted(const RequestSpec& spec) {
    Result<Operation*> op = admission_.Admit(spec, 1);
    EXPECT_TRUE(op.ok()) << op.status().message();
    if (!op.ok()) return nullptr;
    admission_.Commit(*op, spec);
    return *op;
  }
  Status Refused(const RequestSpec& spec) { return admission_.Admit(spec, 1).status(); }

  const RecordVector<int64_t> shape_{3};
  std::vector<float> memory_ = std::vector<float>(3);
  OneRank rank_{1, 3};
  EngineState& state_ = rank_.state;
  Admission admission_{state_.sets, state_.names, state_.operations, state_.joins, false, false};
};

TEST_F(AdmissionTest, MakesAnOperationWithTheDetailOfItsName) {
  Result<Operation*> op = admission_.Admit(Sum("x"), 7);
  ASSERT_TRUE(op.ok());
  EXPECT_EQ((*op)->call, 7u);
  EXPECT_EQ((*op)->set, &state_.sets.world());
  const TensorName& name = *(*op)->name;
  EXPECT_EQ(name.text, "x");
  EXPECT_EQ(name.calls.size(), 1u);
  EXPECT_EQ(name.own_detail.parts[0].shape, shape_);
  EXPECT_EQ(name.operation, nullptr) << "not committed";
  EXPECT_EQ((*op)->set->in_flight, 0u);
  admission_.Commit(*op, Sum("x"));
  EXPECT_EQ(name.operation, *op);
  EXPECT_EQ((*op)->set->in_flight, 1u);
}

TEST_F(AdmissionTest, CancelForgetsTheOperationAndItsName) {
  Result<Operation*> op = admission_.Admit(Sum("x"), 1);
  ASSERT_TRUE(op.ok());
  const Operation::Handle handle = (*op)->handle();
  admission_.Cancel(*op);
  EXPECT_EQ(state_.operations.Find(handle), nullptr);
  EXPECT_EQ(state_.names.Find(0, "x"), nullptr);
}

TEST_F(AdmissionTest, RefusesANameInFlightOrNotRetired) {
  Operation* op = Admitted(Sum("x"));
  EXPECT_EQ(Refused(Sum("x")).code(), Code::kDuplicateName);
  EXPECT_THAT(Refused(Sum("x")).message(), HasSubstr("'x' is already in flight on rank 1"));
  state_.finished.Add(op);
  EXPECT_EQ(Refused(Sum("x")).code(), Code::kDuplicateName);
  state_.finished.RetireUpTo(1);
  Admitted(Sum("x"));
}

TEST_F(AdmissionTest, NamesUnnamedRequestsInTheOrderOfThoseThatWereCommitted) {
  RequestSpec spec = Sum("");
  spec.unnamed = true;
  Result<Operation*> refused = admission_.Admit(spec, 1);
  ASSERT_TRUE(refused.ok());
  admission_.Cancel(*refused);
  EXPECT_EQ(Admitted(spec)->name->text, "allreduce.noname.0");
  EXPECT_EQ(Admitted(spec)->name->text, "allreduce.noname.1");
}

TEST_F(AdmissionTest, OneJoinIsInFlightUnderAnyName) {
  RequestSpec join;
  join.collective = Collective::kJoin;
  join.name = "mine";
  EXPECT_EQ(Admitted(join)->name->text, NameTable::kJoinName);
  join.name = "another";
  EXPECT_EQ(Refused(join).code(), Code::kDuplicateName);
}

TEST_F(AdmissionTest, ARankThatHasJoinedSubmitsNothing) {
  state_.joins.Note(1);
  const Status refused = Refused(Sum("x"));
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("rank 1 has joined and submits nothing more"));
  EXPECT_EQ(state_.names.Find(0, "x"), nullptr);
}

TEST_F(AdmissionTest, RefusesSetsThatThisRankCannotUse) {
  state_.sets.Add(std::vector<uint32_t>{0, 2});
  ProcessSet& own = state_.sets.Add(std::vector<uint32_t>{0, 1});
  RequestSpec spec = Sum("x");
  spec.process_set = 9;
  EXPECT_THAT(Refused(spec).message(), HasSubstr("process set 9 is unknown on rank 1"));
  spec.process_set = 1;
  EXPECT_THAT(Refused(spec).message(), HasSubstr("no member of process set 1, whose ranks are"));
  spec.process_set = 2;
  EXPECT_EQ(Admitted(spec)->set, &own);
  own.removing = true;
  EXPECT_THAT(Refused(spec).message(), HasSubstr("process set 2 is being removed on rank 1"));
  RequestSpec remove;
  remove.collective = Collective::kRemoveProcessSet;
  remove.name = NameTable::kSetsName;
  EXPECT_THAT(Refused(remove).message(), HasSubstr("is the world and cannot be removed"));
  RequestSpec join;
  join.collective = Collective::kJoin;
  join.process_set = 1;
  EXPECT_THAT(Refused(join).message(), HasSubstr("join is possible on the world only"));
}

TEST_F(AdmissionTest, AnAverageOfActiveRanksIsAnOperationOfItsOwn) {
  Admission active{state_.sets, state_.names, state_.operations, state_.joins, true, false};
  auto op_of = [](const Result<Operation*>& op) { return (*op)->name->own_detail.op; };
  EXPECT_EQ(op_of(active.Admit(Sum("a", ReduceOp::kAverage), 1)), ReduceOp::kActiveAverage);
  EXPECT_EQ(op_of(active.Admit(Sum("b", ReduceOp::kSum), 1)), ReduceOp::kSum);
  EXPECT_EQ(op_of(admission_.Admit(Sum("c", ReduceOp::kAverage), 1)), ReduceOp::kAverage);
}

TEST_F(AdmissionTest, ARepeatedRequestKeepsTheDetailThatThePeersKnow) {
  Operation* op = Admitted(Sum("x"));
  TensorName* name = op->name;
  name->own_detail_known = true;
  ++name->references;
  state_.finished.Add(op);
  state_.finished.RetireUpTo(1);
  op = Admitted(Sum("x"));
  EXPECT_TRUE(name->own_detail_known);
  state_.finished.Add(op);
  state_.finished.RetireUpTo(1);
  Admitted(Sum("x", ReduceOp::kMax));
  EXPECT_FALSE(name->own_detail_known);
}

TEST_F(AdmissionTest, ARequestThatEveryRankRefusesIsOnlyAnnounced) {
  const std::vector<int64_t> scalar;
  RequestSpec spec = TensorOf(Collective::kAllgather, "g", scalar);
  spec.tensor.input = memory_.data();
  const TensorName& name = *Admitted(spec)->name;
  EXPECT_FALSE(name.refusal.ok());
  ASSERT_EQ(name.calls.size(), 1u);
  EXPECT_EQ(name.calls[0].collective, Collective::kBarrier);
}

}  // namespace
}  // namespace hvd::test
