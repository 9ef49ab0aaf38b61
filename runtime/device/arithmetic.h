// The operator of a reduction.
#ifndef HVD_RUNTIME_DEVICE_ARITHMETIC_H_
#define HVD_RUNTIME_DEVICE_ARITHMETIC_H_

namespace hvd {

enum class Arithmetic : unsigned char { kSum, kMin, kMax, kProduct };

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_ARITHMETIC_H_
