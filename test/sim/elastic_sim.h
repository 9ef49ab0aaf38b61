// An elastic job without hosts and processes: the state machine of the job is the real one, and a
// model of hosts, agents and workers answers its actions, under seeded faults and delays. The clock
// is a number.
#ifndef HVD_TEST_SIM_ELASTIC_SIM_H_
#define HVD_TEST_SIM_ELASTIC_SIM_H_

#include <cstdint>
#include <memory>
#include <string>

namespace hvd::test {

// The result of a run.
struct ElasticSimResult {
  std::string trouble;   // the rule that was broken, and when; empty: none
  std::string schedule;  // what happened and what was decided, if it was asked for
  int exit_code = 0;
  uint64_t generations = 0;
  uint32_t spares = 0;      // workers that waited for a place
  uint32_t restarts = 0;    // of all workers together
  uint32_t taken_over = 0;  // hvdrun was killed so often
};

class ElasticSim {
 public:
  // `keep_schedule` costs time: for a seed that failed. `takeovers`: hvdrun is killed at any
  // moment, and another one goes on from its record.
  explicit ElasticSim(uint64_t seed, bool keep_schedule = false, bool takeovers = false);
  ~ElasticSim();

  // Until the job is done or a rule is broken. Call once.
  ElasticSimResult Run();

 private:
  class World;
  std::unique_ptr<World> world_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_SIM_ELASTIC_SIM_H_
