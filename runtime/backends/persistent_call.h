// PersistentCall: an operation with members on other hosts that comes again under its name, as a
// rank knows from the time before (the persistent requests of MPI). The messages of its members are
// ready, so that each time costs little.
#ifndef HVD_RUNTIME_BACKENDS_PERSISTENT_CALL_H_
#define HVD_RUNTIME_BACKENDS_PERSISTENT_CALL_H_

#include <cstdint>
#include <functional>

namespace hvd {

class PersistentCall {
 public:
  enum class Outcome : uint8_t {
    kDone,      // the output is complete
    kNotBegun,  // not now: no other rank has learned anything of it
    kGoesOn,    // as the operation that `become` has started
  };

  virtual ~PersistentCall() = default;

  // Once more, with these. Waits no longer than a thread that has a core of its own may look for an
  // answer. Where that does not come, or is another one than expected, calls `become`, which
  // prepares and starts the call at the backend, as any other one. Under the engine's lock.
  virtual Outcome Run(const void* input, void* output, const std::function<void()>& become) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_PERSISTENT_CALL_H_
