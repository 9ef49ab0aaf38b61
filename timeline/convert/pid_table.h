// PidTable: maps process ids of several traces to those of the merged trace. Pure.
#ifndef HVD_TIMELINE_CONVERT_PID_TABLE_H_
#define HVD_TIMELINE_CONVERT_PID_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hvd {

class PidTable {
 public:
  // `keeps`: per trace: keep its ids unless another trace has the same.
  explicit PidTable(const std::vector<bool>& keeps);

  struct Pid {
    std::string text;     // of the merged trace: a number
    bool moved = false;   // differs from its own trace
    bool is_new = false;  // first lookup
  };
  // `pid`: a number or text as written in JSON. The result is valid until the next call.
  const Pid& Find(size_t trace, std::string_view pid);

  static constexpr int64_t kBlock = 10'000'000;

 private:
  struct Trace {
    bool keeps = false;
    std::unordered_map<std::string, Pid> known;
    std::string last;  // the last lookup and its result
    Pid* found = nullptr;
    int64_t others = 0;  // without an id of their own
  };
  int64_t NumberFor(size_t trace, int64_t own);

  std::vector<Trace> traces_;
  std::map<int64_t, size_t> owners_;  // of ids that were kept
};

}  // namespace hvd

#endif  // HVD_TIMELINE_CONVERT_PID_TABLE_H_
