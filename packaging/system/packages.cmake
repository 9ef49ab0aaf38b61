# Packages for Debian and RPM, of what `cmake --install` installs: `cpack -G DEB` and `cpack -G RPM` in the build folder.
set(CPACK_PACKAGE_NAME hvdrun)
set(CPACK_PACKAGE_VENDOR "The hvdrun authors")
set(CPACK_PACKAGE_CONTACT "The hvdrun authors <hvdrun@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "starts distributed training jobs and runs their collectives")
set(CPACK_PACKAGE_DESCRIPTION "hvdrun starts the processes of a training job on one or many hosts, and keeps their output, their ends and their
causes. libhvd.so and the Python package horovod reduce their gradients.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_FILE_NAME hvdrun-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The build tree's libraries are the package's own.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, openssh-client")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-torch, openssh-server")

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0")
set(CPACK_RPM_PACKAGE_GROUP "Applications/Engineering")
set(CPACK_RPM_PACKAGE_AUTOREQ ON)
# Folders that the distribution's own packages have.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/share/man /usr/share/man/man1 /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh
    /usr/share/zsh/site-functions /usr/share/fish /usr/share/fish/vendor_completions.d /usr/lib/pkgconfig /usr/lib/cmake)

# What packages have besides, by their kind: a line by which the distribution's Python finds the one copy of horovod, which hvdrun gives to workers,
# too; and Debian's file of licences. The line is relative, so it holds wherever the package is unpacked.
function(hvd_find_horovod root site_packages)
  file(RELATIVE_PATH way /usr/${site_packages} /usr/${HVD_PYTHON_DIR})
  file(WRITE ${root}/${site_packages}/hvdrun.pth "${way}\n")
endfunction()

set(HVD_DEBIAN_FILES ${PROJECT_BINARY_DIR}/packages/debian)
hvd_find_horovod(${HVD_DEBIAN_FILES} lib/python3/dist-packages)
configure_file(packaging/system/copyright ${HVD_DEBIAN_FILES}/share/doc/hvdrun/copyright COPYONLY)
set(HVD_RPM_FILES "")
if(HVD_SBOM_PYTHON)
  execute_process(COMMAND ${HVD_SBOM_PYTHON} -c "import sysconfig; print(sysconfig.get_path('purelib', 'posix_prefix', {'base': '/usr'}))"
                  OUTPUT_VARIABLE site_packages OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(HVD_RPM_FILES ${PROJECT_BINARY_DIR}/packages/rpm)
  file(RELATIVE_PATH site_packages /usr ${site_packages})
  hvd_find_horovod(${HVD_RPM_FILES} ${site_packages})
  get_filename_component(python ${site_packages} DIRECTORY)
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/${site_packages} /usr/${python})
endif()
file(WRITE ${PROJECT_BINARY_DIR}/packages/files.cmake "
if(CPACK_GENERATOR STREQUAL \"DEB\")
  set(CPACK_INSTALLED_DIRECTORIES \"${HVD_DEBIAN_FILES};usr\")
elseif(CPACK_GENERATOR STREQUAL \"RPM\" AND NOT \"${HVD_RPM_FILES}\" STREQUAL \"\")
  set(CPACK_INSTALLED_DIRECTORIES \"${HVD_RPM_FILES};usr\")
endif()
")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/packages/files.cmake)
include(CPack)
