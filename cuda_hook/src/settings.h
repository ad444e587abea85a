#ifndef EDGESHARE_SETTINGS_H
#define EDGESHARE_SETTINGS_H

/* What the environment says to the hook, as it was at the first look: programs change and clear it later, and reading it
 * then is not safe beside a thread that does. Empty where it says nothing, and in a program that runs with more rights
 * than its caller's. */

enum { ES_SETTING_BYTES = 512 }; /* with the zero at its end; what is longer is cut */

/* EDGESHARE_HOOK_DIR: where the allocation's folder is. */
const char *es_setting_folder(void);

/* EDGESHARE_TPU_HOOK_DIR: where the folder of its EdgeTPU allocation is. */
const char *es_setting_tpu_folder(void);

/* EDGESHARE_HOOK_LOG: a file to append to, or "stderr". */
const char *es_setting_log(void);

#endif
