#include "runtime/net/mesh/mesh_turns.h"

#include <gtest/gtest.h>

#include <thread>

#include "test/support/deadline.h"

namespace hvd {
namespace {

class MeshTurnsTest : public ::testing::Test {
 protected:
  // Threads that sleep for a turn until they get one, in the order of `patient`.
  void StartSleepers(const std::vector<bool>& patient) {
    waiters_ = std::vector<MeshWaiter>(patient.size());
    for (size_t i = 0; i < patient.size(); ++i) {
      waiters_[i].patient = patient[i];
      waiters_[i].deadline = Soon();
      threads_.emplace_back([this, i] {
        MutexLock lock(mutex_);
        while (turns_.driver() != &waiters_[i]) turns_.Sleep(waiters_[i], lock);
        turns_.PassOn();
      });
      AwaitSleepers(i + 1);
    }
  }
  void AwaitSleepers(size_t count) {
    for (;;) {
      MutexLock lock(mutex_);
      if (turns_.sleepers().size() == count) return;
      lock.unlock();
      std::this_thread::yield();
    }
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
  }

  Mutex mutex_;
  MeshTurns turns_;
  std::vector<MeshWaiter> waiters_;
  std::vector<std::thread> threads_;
};

TEST_F(MeshTurnsTest, TheFirstThreadDrivesUntilItPassesOn) {
  MeshWaiter first, second;
  EXPECT_TRUE(turns_.TryDrive(first));
  EXPECT_FALSE(turns_.TryDrive(second));
  EXPECT_TRUE(turns_.TryDrive(first));
  turns_.PassOn();
  EXPECT_EQ(turns_.driver(), nullptr) << "no thread sleeps for it";
  EXPECT_TRUE(turns_.TryDrive(second));
}

TEST_F(MeshTurnsTest, TheTurnGoesToAThreadThatWaitsForData) {
  MeshWaiter driver;
  turns_.TryDrive(driver);
  StartSleepers({true, false});
  {
    MutexLock lock(mutex_);
    turns_.PassOn();
    EXPECT_EQ(turns_.driver(), &waiters_[1]);
  }
  Join();  // each passes the turn on when it has had it
  EXPECT_EQ(turns_.driver(), nullptr);
}

// It would only be in the way of the driver that returns.
TEST_F(MeshTurnsTest, WhileTheDriverPausesNoPatientThreadIsWoken) {
  MeshWaiter driver;
  turns_.TryDrive(driver);
  StartSleepers({true});
  {
    MutexLock lock(mutex_);
    turns_.Pause();
    EXPECT_EQ(turns_.driver(), nullptr);
    EXPECT_TRUE(turns_.TryDrive(driver)) << "it has returned";
    turns_.PassOn();
    EXPECT_EQ(turns_.driver(), &waiters_[0]);
  }
  Join();
}

TEST_F(MeshTurnsTest, WhileTheDriverPausesOneThatWaitsForDataDrives) {
  MeshWaiter driver;
  turns_.TryDrive(driver);
  StartSleepers({true, false});
  {
    MutexLock lock(mutex_);
    turns_.Pause();
    EXPECT_EQ(turns_.driver(), &waiters_[1]);
  }
  Join();
}

TEST_F(MeshTurnsTest, OnlyAPatientDriverIsAskedForItsTurnAndOnce) {
  MeshWaiter patient, hasty;
  patient.patient = true;
  turns_.TryDrive(patient);
  EXPECT_FALSE(turns_.AsksForHandOver(patient)) << "a patient thread does not ask";
  EXPECT_TRUE(turns_.AsksForHandOver(hasty));
  EXPECT_TRUE(turns_.hand_over());
  EXPECT_FALSE(turns_.AsksForHandOver(hasty)) << "it has been asked";
  turns_.PassOn();
  EXPECT_FALSE(turns_.hand_over());
  turns_.TryDrive(hasty);
  EXPECT_FALSE(turns_.AsksForHandOver(patient));
  MeshWaiter other;
  EXPECT_FALSE(turns_.AsksForHandOver(other));
}

TEST_F(MeshTurnsTest, ASleepEndsAtItsDeadline) {
  MutexLock lock(mutex_);
  MeshWaiter driver, waiter;
  turns_.TryDrive(driver);
  waiter.deadline = SteadyNow();
  turns_.Sleep(waiter, lock);
  EXPECT_TRUE(turns_.sleepers().empty());
}

TEST_F(MeshTurnsTest, TheThreadOfTheMeshStandsBackAfterAWait) {
  MutexLock lock(mutex_);
  EXPECT_EQ(turns_.Yield(lock), MeshTurns::Turn::kServe) << "no thread has waited";
  turns_.NoteWait();
  EXPECT_FALSE(turns_.IsQuiet());
  EXPECT_EQ(turns_.Yield(lock), MeshTurns::Turn::kPause);
  EXPECT_EQ(turns_.Yield(lock), MeshTurns::Turn::kServe) << "no other wait has begun";
}

TEST_F(MeshTurnsTest, TheThreadOfTheMeshRestsUntilALongWaitIsOver) {
  MeshWaiter driver;
  turns_.NoteWait();
  turns_.TryDrive(driver);
  bool over = false, rested = false;
  std::thread thread([&] {
    MutexLock lock(mutex_);
    while (turns_.Yield(lock) != MeshTurns::Turn::kServe) {
      EXPECT_TRUE(over || !rested);
      rested = true;
    }
    EXPECT_TRUE(over);
  });
  {
    MutexLock lock(mutex_);
    over = true;
    turns_.PassOn();
  }
  thread.join();
}

TEST_F(MeshTurnsTest, TheRestEndsWithTheMesh) {
  MeshWaiter driver;
  turns_.TryDrive(driver);  // for ever
  bool stopping = false, looked = false;
  std::thread thread([&] {
    MutexLock lock(mutex_);
    while (!stopping) {
      looked = true;
      turns_.Yield(lock);
    }
  });
  for (bool seen = false; !seen; std::this_thread::yield()) {
    MutexLock lock(mutex_);
    seen = looked;
  }
  {
    MutexLock lock(mutex_);
    stopping = true;
    turns_.EndRest();
  }
  thread.join();
}

}  // namespace
}  // namespace hvd
