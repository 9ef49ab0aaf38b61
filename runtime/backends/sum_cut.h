// SumCut: how a large sum between hosts is cut and exchanged. The coordinator sends it with each
// batch, so that all leaders have the same while it changes.
#ifndef HVD_RUNTIME_BACKENDS_SUM_CUT_H_
#define HVD_RUNTIME_BACKENDS_SUM_CUT_H_

#include <cstdint>

namespace hvd {

// 0: as the InterHostComm chooses. No choice changes a bit of the result.
struct SumCut {
  uint32_t piece_kib = 0;  // the size of one piece
  uint32_t pieces = 0;     // those under way at once
  uint32_t stripes = 0;    // connections to each leader, over which a piece is spread
  // A sum of at most so many KiB that is not cut is sent before its receiver has said that it has
  // memory for it, which saves a message each way. Until the receiver comes to that sum, it reads
  // nothing more of the sender. 0: none is.
  uint32_t eager_kib = 0;
  bool operator==(const SumCut&) const = default;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SUM_CUT_H_
