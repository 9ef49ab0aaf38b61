// PidTable: which number a process of one of several traces has in all of them together. Pure.
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
  // `keeps`: for each trace, whether its numbers stay as long as no other trace has one of them.
  explicit PidTable(const std::vector<bool>& keeps);

  struct Pid {
    std::string text;     // of the merged trace: a number
    bool moved = false;   // it is another one than in its own trace
    bool is_new = false;  // it was not asked for before
  };
  // `pid` is a number or a text, as it is written in JSON. Valid until the next call.
  const Pid& Find(size_t trace, std::string_view pid);

  static constexpr int64_t kBlock = 10'000'000;

 private:
  struct Trace {
    bool keeps = false;
    std::unordered_map<std::string, Pid> known;
    std::string last;  // what was asked for, and found, last
    Pid* found = nullptr;
    int64_t others = 0;  // that had no number of their own
  };
  int64_t NumberFor(size_t trace, int64_t own);

  std::vector<Trace> traces_;
  std::map<int64_t, size_t> owners_;  // of numbers that stayed
};

}  // namespace hvd

#endif  // HVD_TIMELINE_CONVERT_PID_TABLE_H_
