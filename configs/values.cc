#include "configs/values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

// The shortest text that reads back as the same number: "3", "0.5".
std::string NumberText(double number) {
  char buffer[32];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, number);
  return error == std::errc{} ? std::string(buffer, end) : std::to_string(number);
}

// Bounds and counts without an exponent: "1000000".
std::string PlainNumberText(double number) {
  char buffer[64];
  auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed);
  return error == std::errc{} ? std::string(buffer, end) : NumberText(number);
}

template <typename T>
std::optional<T> WholeText(std::string_view text) {
  T number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  // Digits that do not fit are out of range, not malformed.
  if (error == std::errc::result_out_of_range) {
    return text.front() == '-' ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  if (error != std::errc{}) return std::nullopt;
  return number;
}

std::optional<double> ParseReal(std::string_view text) {
  std::optional<double> number = WholeText<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// "1048576", "64K", "64MB", "1 GiB": powers of 1024.
std::optional<int64_t> ParseBytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  size_t digits = std::min(text.find_first_not_of("-0123456789"), text.size());
  std::optional<int64_t> count = WholeText<int64_t>(text.substr(0, digits));
  std::string unit = Upper(text.substr(digits));
  unit.erase(0, unit.find_first_not_of(' '));
  if (unit.ends_with("IB")) {
    unit.resize(unit.size() - 2);
  } else if (unit.ends_with("B")) {
    unit.resize(unit.size() - 1);
  }
  if (!count || unit.empty()) return count;
  size_t power = kUnits.find(unit);
  if (unit.size() != 1 || power == std::string_view::npos) return std::nullopt;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(*count, int64_t{1} << (10 * (power + 1)), &bytes)) {
    return std::numeric_limits<int64_t>::max();
  }
  return bytes;
}

// "10 100", "10,100"
std::optional<IntRange> ParseRange(std::string_view text) {
  const size_t between = text.find_first_of(" ,");
  if (between == std::string_view::npos) return std::nullopt;
  const std::optional<int> lo = WholeText<int>(text.substr(0, between));
  const std::optional<int> hi = WholeText<int>(text.substr(between + 1));
  if (!lo || !hi) return std::nullopt;
  return IntRange{.lo = *lo, .hi = *hi};
}

std::string_view TypeInWords(Type type) {
  switch (type) {
    case Type::kInt: return "a whole number";
    case Type::kIntRange: return "two whole numbers, the lower one first";
    case Type::kFloat: return "a number";
    case Type::kSeconds: return "a number of seconds";
    case Type::kBytes: return "a number of bytes such as 64MB";
    case Type::kBool: return "on or off";
    case Type::kEnum: return "one of the choices";
    default: return "a text";
  }
}

// A value in a message: bare when it cannot be misread, in quotes otherwise.
std::string ShownValue(std::string_view text) {
  bool plain =
      !text.empty() && text.size() <= 40 && std::all_of(text.begin(), text.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
      });
  return plain ? std::string(text) : Quoted(text);
}

Status Refused(const Row& row, std::string_view typed, std::string_view text, bool malformed) {
  std::string message = std::string(typed) + ShownValue(text);
  message += malformed ? " is not " + std::string(TypeInWords(row.type)) : " is out of range";
  message += ": " + std::string(row.what) + " is " + AllowedValues(row);
  return InvalidArgument(message + ", try " + std::string(typed) + std::string(row.example));
}

bool InRange(const Row& row, double number) { return number >= row.min && number <= row.max; }

template <typename T>
Result<std::string> StoreNumber(const Row& row, std::string_view typed, std::string_view text,
                                std::optional<T> number, Settings& settings) {
  if (!number) return Refused(row, typed, text, true);
  if (!InRange(row, static_cast<double>(*number))) return Refused(row, typed, text, false);
  settings.*std::get<T Settings::*>(row.target) = *number;
  if constexpr (std::is_integral_v<T>) return std::to_string(*number);
  return NumberText(static_cast<double>(*number));
}

Result<std::string> StoreRange(const Row& row, std::string_view typed, std::string_view text,
                               Settings& settings) {
  const std::optional<IntRange> range = ParseRange(text);
  if (!range) return Refused(row, typed, text, true);
  if (!InRange(row, range->lo) || !InRange(row, range->hi)) return Refused(row, typed, text, false);
  if (range->lo > range->hi) return Refused(row, typed, text, true);
  settings.*std::get<IntRange Settings::*>(row.target) = *range;
  return Format("{} {}", range->lo, range->hi);
}

Result<std::string> StoreChoice(const Row& row, std::string_view typed, std::string_view text,
                                Settings& settings) {
  for (size_t i = 0; i < row.choices.size(); ++i) {
    if (Upper(row.choices[i]) != Upper(text)) continue;
    if (const auto* chosen = std::get_if<ChoiceTarget>(&row.target)) {
      chosen->store(settings, i);
    } else {  // for the workers alone
      settings.*std::get<std::string Settings::*>(row.target) = row.choices[i];
    }
    return std::string(row.choices[i]);
  }
  return Refused(row, typed, text, true);
}

Result<std::string> StoreText(const Row& row, std::string_view typed, std::string_view text,
                              Settings& settings) {
  if (text.find('\0') != std::string_view::npos) return Refused(row, typed, text, true);
  settings.*std::get<std::string Settings::*>(row.target) = text;
  return std::string(text);
}

// Adds to the list; its canonical text is all of it.
Result<std::string> AppendText(const Row& row, std::string_view typed, std::string_view text,
                               Settings& settings) {
  if (text.find('\0') != std::string_view::npos) return Refused(row, typed, text, true);
  auto& list = settings.*std::get<std::vector<std::string> Settings::*>(row.target);
  list.emplace_back(text);
  std::string joined;
  for (const std::string& item : list) joined += (joined.empty() ? "" : " ") + item;
  return joined;
}

}  // namespace

Result<std::string> StoreValue(const Row& row, std::string_view typed, std::string_view text,
                               Settings& settings) {
  switch (row.type) {
    case Type::kInt: return StoreNumber(row, typed, text, WholeText<int>(text), settings);
    case Type::kIntRange: return StoreRange(row, typed, text, settings);
    case Type::kBytes: return StoreNumber(row, typed, text, ParseBytes(text), settings);
    case Type::kFloat:
    case Type::kSeconds: return StoreNumber(row, typed, text, ParseReal(text), settings);
    case Type::kEnum: return StoreChoice(row, typed, text, settings);
    case Type::kString: return StoreText(row, typed, text, settings);
    case Type::kList: return AppendText(row, typed, text, settings);
    case Type::kBool: {
      std::optional<bool> on = ParseBool(text);
      if (!on) return Refused(row, typed, text, true);
      settings.*std::get<bool Settings::*>(row.target) = *on;
      return std::string(*on ? "on" : "off");
    }
    case Type::kAction: break;
  }
  return Internal("the row " + std::string(row.name) + " holds no value");
}

std::optional<bool> ParseBool(std::string_view text) {
  std::string upper = Upper(text);
  for (std::string_view yes : {"ON", "1", "TRUE", "YES"}) {
    if (upper == yes) return true;
  }
  for (std::string_view no : {"OFF", "0", "FALSE", "NO"}) {
    if (upper == no) return false;
  }
  return std::nullopt;
}

std::string Placeholder(const Row& row) {
  if (!row.placeholder.empty()) return " " + std::string(row.placeholder);
  switch (row.type) {
    case Type::kInt: return " N";
    case Type::kIntRange: return " LO HI";
    case Type::kFloat: return " X";
    case Type::kSeconds: return " SECONDS";
    case Type::kBytes: return " BYTES";
    case Type::kEnum: return " WORD";
    case Type::kString:
    case Type::kList: return " TEXT";
    case Type::kAction:
    case Type::kBool: return "";
  }
  return "";
}

std::string AllowedValues(const Row& row) {
  if (row.type == Type::kBool) return "on or off";
  if (row.type == Type::kString || row.type == Type::kList) return "a text";
  if (row.type == Type::kEnum) {
    std::string list;
    for (size_t i = 0; i < row.choices.size(); ++i) {
      if (i > 0) list += i + 1 == row.choices.size() ? " or " : ", ";
      list += row.choices[i];
    }
    return list;
  }
  std::string range = PlainNumberText(row.min) + " to " + PlainNumberText(row.max);
  if (row.type == Type::kIntRange) return "two numbers from " + range;
  return row.type == Type::kSeconds ? range + " seconds" : range;
}

}  // namespace hvd
