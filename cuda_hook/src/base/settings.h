#ifndef EDGESHARE_SETTINGS_H
#define EDGESHARE_SETTINGS_H

/* What the hook is told from outside, as it was at the first look: programs change and clear the environment later, and
 * reading it then is not safe beside a thread that does. A program that runs with more rights than its caller's is told
 * nothing by the environment. */

enum { ES_SETTING_BYTES = 512 }; /* with the zero at its end; what is longer is cut */

/* The folder of this process's allocation: where a container has it mounted, and only where none is there
 * EDGESHARE_HOOK_DIR, which tells programs outside of containers. */
const char *es_setting_folder(void);

/* The folder of this process's EdgeTPU allocation, outside of containers by EDGESHARE_TPU_HOOK_DIR. It is another folder
 * than the GPU's, as a container may have both. */
const char *es_setting_tpu_folder(void);

/* EDGESHARE_HOOK_LOG: a file to append to, or "stderr"; empty where nothing is to be logged. */
const char *es_setting_log(void);

#endif
