# A script body: stops at the first error. Files under the outputs folder survive the cluster: helio cp last:outputs ./here
echo "nodes: $HELIOSTAT_NUM_NODES, this one is number $HELIOSTAT_NODE_INDEX"
date > "$HELIOSTAT_OUTPUT_DIR/when.txt"
false || echo "handled errors go on"
