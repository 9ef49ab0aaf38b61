// Reads fields of a JSON object from an untrusted source. nlohmann's own conversions cast any
// number to any number, which is undefined behaviour beyond the target's range.
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_JSON_FIELD_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_JSON_FIELD_H_

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace hvd {

// Throws a nlohmann::json::exception if the field is missing, of another type, or an integer out of
// T's range.
template <typename Json, typename T>
void ReadField(const Json& object, const char* name, T& value) {
  const Json& field = object.at(name);
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    const bool fits = field.is_number_unsigned()  ? std::in_range<T>(field.template get<uint64_t>())
                      : field.is_number_integer() ? std::in_range<T>(field.template get<int64_t>())
                                                  : false;
    if (!fits) {
      throw nlohmann::json::other_error::create(
          501, std::string(name) + " is no integer of its range", &field);
    }
  }
  field.get_to(value);
}

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_JSON_FIELD_H_
