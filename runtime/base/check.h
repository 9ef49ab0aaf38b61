// HVD_CHECK(condition, values...): an invariant that protects memory from corruption, checked in
// release builds too. If it fails, the process prints file, line, the condition and the values
// (integers) and aborts: continuing would corrupt the data of its peers.
//
//   HVD_CHECK(offset + bytes <= size, offset, bytes, size);
//
// Not for input or errors of peers: those are a Status. Costs one comparison; the rest is out of
// line. May be used anywhere, also in a forked child: it allocates nothing.
#ifndef HVD_RUNTIME_BASE_CHECK_H_
#define HVD_RUNTIME_BASE_CHECK_H_

#include <cstdint>
#include <initializer_list>

namespace hvd {

// `names` is the source text of the values, "" if there are none.
[[noreturn, gnu::cold, gnu::noinline]] void CheckFailed(const char* file, int line,
                                                        const char* condition, const char* names,
                                                        std::initializer_list<uint64_t> values);

// Accepts integers of any type as values.
template <typename... Integers>
[[noreturn, gnu::cold, gnu::noinline]] void CheckFailedWith(const char* file, int line,
                                                            const char* condition,
                                                            const char* names, Integers... values) {
  CheckFailed(file, line, condition, names, {static_cast<uint64_t>(values)...});
}

}  // namespace hvd

#define HVD_CHECK(condition, ...)                                      \
  do {                                                                 \
    if (!(condition)) [[unlikely]] {                                   \
      ::hvd::CheckFailedWith(__FILE__, __LINE__, #condition,           \
                             #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                  \
  } while (false)

#endif  // HVD_RUNTIME_BASE_CHECK_H_
