#!/bin/bash
# Runs a job of Gamut on nodes of Slurm, on a Ray cluster that lives as long as the job:
#   sbatch --nodes=4 configs/cluster/slurm.sh train --config configs/train_hunt_sheep.yaml --resume --set runners=32
# The arguments are those of `gamut`; the output must be on storage that all nodes share. Before its
# time is over the job saves and is queued again, so use --resume. See docs/clusters.md.
#SBATCH --job-name=gamut
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:TERM@180
set -euo pipefail

# Each node offers one `gamut_game` for two processors, one `gamut_learner` for each GPU, and the first
# one room for a learner without a GPU. Ray's files lie in a private folder on each node.
# shellcheck disable=SC2016  # it is expanded on the node
start='
    mkdir -pm 700 "$GAMUT_RAY_TMP"
    resources="{\"gamut_game\": $(($(getconf _NPROCESSORS_ONLN) / 2)), \"gamut_learner\": ${SLURM_GPUS_ON_NODE:-$GAMUT_LEARNERS}}"
    exec ray start --block --disable-usage-stats --resources="$resources" "$@"'

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
# Always in a subshell, so that ending it ends the step.
step() { exec srun --nodes=1 --ntasks=1 --overlap --cpu-bind=none --nodelist="$1" "${@:2}"; }

# In a folder of mode 0700; a variable would be readable for every game.
folder=$(mktemp -d "${GAMUT_SHARED:-$HOME}/gamut-slurm-XXXXXX")
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$folder/token GAMUT_RAY_TMP=/tmp/gr$SLURM_JOB_ID
python -c 'import secrets; print(secrets.token_hex(32))' > "$RAY_AUTH_TOKEN_PATH"

parts=()
# shellcheck disable=SC2329  # a trap calls it
finish() {
    # Not `ray stop`, which ends every Ray of the machine.
    [ ${#parts[@]} -eq 0 ] || kill "${parts[@]}" 2> /dev/null || true
    wait
    rm -rf "$folder"
}
trap finish EXIT

port=${GAMUT_RAY_PORT:-$((20000 + SLURM_JOB_ID % 10000))}
address=$(step "${nodes[0]}" hostname -I | awk '{print $1}'):$port
for node in "${nodes[@]}"; do
    if [ "$node" = "${nodes[0]}" ]; then
        how=(--head --port="$port" --include-dashboard=false --temp-dir="$GAMUT_RAY_TMP/t")
        learners=1
    else
        how=(--address="$address")
        learners=0
        # Those that join find the head.
        until ray health-check --address="$address" > /dev/null 2>&1; do
            kill -0 "${parts[0]}"
            sleep 1
        done
    fi
    GAMUT_LEARNERS=$learners step "$node" bash -c "$start" ray "${how[@]}" &
    parts+=($!)
done

# What no machine has is refused, not waited for: so wait for all machines.
python - "$address" ${#nodes[@]} << 'END'
import sys, time, ray
ray.init(sys.argv[1], log_to_driver=False, logging_level="error")
end = time.monotonic() + 300
while (there := sum(node["Alive"] for node in ray.nodes())) < int(sys.argv[2]):
    if time.monotonic() > end:
        sys.exit(f"error: {there} of {sys.argv[2]} nodes joined {sys.argv[1]} within 300 s")
    time.sleep(1)
END

# Slurm sends SIGTERM to this shell alone; Gamut saves and exits with 143.
RAY_ADDRESS=$address gamut "$@" &
job=$!
trap 'kill -TERM $job' TERM
status=0
wait $job || status=$?
while kill -0 $job 2> /dev/null; do # a signal has interrupted `wait`
    status=0
    wait $job || status=$?
done
if [ "$status" -eq 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
