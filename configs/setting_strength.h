// How much a way of saying a setting counts.
#ifndef HVD_CONFIGS_SETTING_STRENGTH_H_
#define HVD_CONFIGS_SETTING_STRENGTH_H_

namespace hvd {

// The weaker one first. A standing file is there for all jobs (config_files.h), a file is named by
// --config-file.
enum class Strength { kDefault, kStandingFile, kFile, kVariable, kFlag };

}  // namespace hvd

#endif  // HVD_CONFIGS_SETTING_STRENGTH_H_
