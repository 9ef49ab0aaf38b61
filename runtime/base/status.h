// Status and Result<T>: error reporting across folders. No exceptions cross a folder.
#ifndef HVD_RUNTIME_BASE_STATUS_H_
#define HVD_RUNTIME_BASE_STATUS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hvd {

// Values as hvd_status in hvd.h (checked where the C ABI is implemented).
enum class Code : int {
  kOk = 0,
  kInProgress = 1,
  kInvalidArgument = 2,
  kNotInitialized = 3,
  kDuplicateName = 4,
  kMismatch = 5,
  kAborted = 6,
  kUnsupported = 7,
  kOutOfMemory = 8,
  kForked = 9,
  kInternal = 10,
  kDismissed = 11,
};

// A code and, unless it is kOk, a one-sentence message: who, where, what, because, try. An ok
// Status is a null pointer: hot paths create many.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : failure_(code == Code::kOk ? nullptr : new Failure{code, std::move(message)}) {}
  Status(const Status& other) : failure_(other.ok() ? nullptr : new Failure(*other.failure_)) {}
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status(Status&&) = default;
  Status& operator=(Status&&) = default;

  static Status Ok() { return {}; }

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return ok() ? Code::kOk : failure_->code; }
  // "" if ok.
  const std::string& message() const;

 private:
  struct Failure {
    Code code;
    std::string message;
  };
  std::unique_ptr<const Failure> failure_;
};

inline Status InvalidArgument(std::string m) { return {Code::kInvalidArgument, std::move(m)}; }
inline Status Aborted(std::string m) { return {Code::kAborted, std::move(m)}; }
inline Status Mismatch(std::string m) { return {Code::kMismatch, std::move(m)}; }
inline Status Unsupported(std::string m) { return {Code::kUnsupported, std::move(m)}; }
inline Status OutOfMemory(std::string m) { return {Code::kOutOfMemory, std::move(m)}; }
inline Status Internal(std::string m) { return {Code::kInternal, std::move(m)}; }

// "what: No such file or directory" for a failed system call. `error` is an errno value.
Status SystemError(std::string_view what, int error);

// A value, or the Status that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status&& status() && { return std::move(status_); }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// Returns the Status given by the expression if it is an error. For functions that return a Status
// or a Result.
#define HVD_RETURN_IF_ERROR(...)                                      \
  do {                                                                \
    if (::hvd::Status hvd_status_ = __VA_ARGS__; !hvd_status_.ok()) { \
      return hvd_status_;                                             \
    }                                                                 \
  } while (false)

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_STATUS_H_
