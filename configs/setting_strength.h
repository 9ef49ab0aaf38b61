// Precedence of the sources of a setting.
#ifndef HVD_CONFIGS_SETTING_STRENGTH_H_
#define HVD_CONFIGS_SETTING_STRENGTH_H_

namespace hvd {

// Weakest first. A standing file applies to all jobs (config_files.h), kFile is that of
// --config-file.
enum class Strength { kDefault, kStandingFile, kFile, kVariable, kFlag };

}  // namespace hvd

#endif  // HVD_CONFIGS_SETTING_STRENGTH_H_
