// SumCut: how a large sum between hosts is split and exchanged. The coordinator sends it with each
// batch, so that all leaders use the same while it changes.
#ifndef HVD_RUNTIME_BACKENDS_SUM_CUT_H_
#define HVD_RUNTIME_BACKENDS_SUM_CUT_H_

#include <cstdint>

namespace hvd {

// 0: the InterHostComm chooses. No choice changes a bit of the result.
struct SumCut {
  uint32_t piece_kib = 0;  // the size of one piece
  uint32_t pieces = 0;     // in flight at once
  uint32_t stripes = 0;    // connections to each leader, over which a piece is spread
  // Unsplit sums of at most this size are sent before the receiver has announced memory for them,
  // which saves a message each way. Until the receiver reaches that sum it reads nothing more from
  // the sender. 0: never.
  uint32_t eager_kib = 0;
  bool operator==(const SumCut&) const = default;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SUM_CUT_H_
