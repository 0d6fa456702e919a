"""Topics of the full world: life, computers, earth and society; eight names each."""

TOPICS = """
D life sciences, biomedical research, biology and medicine, health science, living systems study,
    bioscience, medical discovery, organismal research.
F genomics, dna research, heritable biology, genome labs, chromosome science, heredity computing,
    nucleic acids, biological blueprints.
S variant calling, mutation discovery, polymorphism detection, allele difference finding, base
    change reporting, snp identification, germline deviation listing, nucleotide edit spotting.
S gene expression, transcript abundance, rna quantification, messenger level profiling,
    transcriptome measurement, locus activity readout, cellular mrna counts, promoter output.
S splice sites, exon borders, intron junctions, transcript cutting points, spliceosome signals,
    donor acceptor boundaries, isoform seams, excision positions.
S microbiome profiling, gut bacteria census, microbial community survey, intestinal flora mapping,
    metagenome inventory, commensal organism counting, prokaryote assemblage study, digestive
    ecology sampling.
S ancestry inference, population origin estimation, lineage reconstruction, forebear assignment,
    pedigree tracing, ethnic provenance, descent admixture, genealogy deduction.
F molecular science, pharmaceutical innovation, drug labs, atomic scale craft, laboratory
    compounds, medicinal modelling, nanoscale matter, molecular informatics.
S protein folding, polypeptide structure, amino chain conformation, tertiary shape determination,
    residue contact maps, enzyme architecture, macromolecule coiling, proteomic topology.
S binding affinity, ligand attachment strength, docking energy, target adhesion, receptor
    attraction, inhibitor potency, pocket complementarity, complex dissociation.
S retrosynthesis planning, reaction route search, precursor backtracking, synthetic pathway
    finding, reagent disassembly, bench recipe design, molecule making steps, backward chemistry.
S toxicity screening, poison warning, hazardous compound filtering, adverse chemical flags,
    harmful dose rating, safety assay triage, noxious substance alerts, lethality estimation.
S crystal materials, lattice solids, periodic structure discovery, mineral phase search, unit cell
    stability, inorganic compound exploration, alloy invention, ceramic prospecting.
F medical imaging, clinical photographs, radiology pictures, diagnostic visualisation, hospital
    imagery, anatomy photography, patient pictures, bodily views.
S tumour segmentation, cancer outlining, lesion delineation, neoplasm contouring, malignancy
    boundary drawing, oncologic mask making, growth margin tracing, carcinoma partition.
S retinal screening, eye fundus grading, ophthalmic checks, diabetic vision examination, macula
    inspection, ocular vessel review, optic disc assessment, sight loss prevention.
S chest radiographs, thorax xray reading, lung film reporting, pulmonary plate interpretation,
    ribcage exposure findings, pneumonia image detection, respiratory shadow review,
    cardiothoracic roentgen study.
S mri acceleration, magnetic resonance speedup, faster scanner acquisition, undersampled kspace,
    quick coil recovery, shortened spin scans, rapid relaxation capture, gradient echo shortening.
S pathology slides, tissue section viewing, histology whole slides, biopsy microscopy, stained
    specimen grading, cytology glass review, gigapixel cell examination, microtome evaluation.
F clinical records, patient files, hospital informatics, health documentation, medical charts,
    care histories, bedside notes, infirmary registries.
S sepsis warning, blood infection alarms, septic shock anticipation, bacteraemia early alert,
    systemic inflammation notice, critical contagion forecasting, organ failure precursors,
    intensive ward fever signals.
S readmission risk, rehospitalisation chance, discharge return odds, repeat admission scoring,
    bounceback probability, inpatient comeback estimation, relapse stay rates, revisit likelihood.
S diagnosis coding, billing label assignment, icd categorisation, disease code attribution,
    encounter indexing, ailment catalogue entry, insurer code mapping, nosology lookup.
S medication dosing, drug amount setting, prescription quantity, pill regimen tuning, therapeutic
    titration, infusion level choice, pharmacy posology, insulin amount advice.
S trial matching, study recruitment, participant eligibility, volunteer enrolment, protocol
    candidate search, cohort inclusion, research subject pairing, experiment admission.
D computer systems, computing infrastructure, machine platforms, systems engineering, digital
    infrastructure, hardware and software stacks, information technology plant, computation
    facilities.
F datacentres, clustered hosts, many servers, parallel platforms, warehouse servers, networked
    hosts, farm of processors, rented infrastructure.
S job scheduling, task queue ordering, workload placement, batch dispatching, cluster assignment,
    run order planning, work item allotment, slot allocation.
S fault tolerance, failure survival, crash resilience, outage endurance, breakdown masking,
    replica recovery, error surviving execution, malfunction hardiness.
S consensus protocols, agreement algorithms, quorum voting, leader election, byzantine accord,
    ledger unanimity, replicated log concord, commit arbitration.
S load balancing, demand spreading, traffic equalisation, request distribution, burden sharing,
    server pressure levelling, hotspot relief, utilisation evening.
S serverless functions, ephemeral cloud handlers, on demand lambdas, pay per call computing, cold
    start services, stateless microhandlers, elastic function hosting, instant container launch.
F databases, tabular technology, archives and warehouses, organised storehouses, information
    repositories, tablespace technology, librarian software, persistence technology.
S query optimisation, sql plan choice, join ordering, execution strategy costing, relational
    rewriting, predicate pushdown, lookup plan tuning, select statement speeding.
S index structures, lookup accelerators, btree alternatives, key search layouts, access path
    building, hash directory design, sorted pointer maps, record finder trees.
S data cleaning, dirty record repair, error scrubbing in tables, value correction, misspelt entry
    fixing, null imputation, inconsistency purging, duplicate row removal.
S stream joins, continuous flow matching, windowed merging, live feed combination, unbounded tuple
    pairing, online record fusion, tick stream correlation, sliding union processing.
S schema matching, column correspondence, attribute alignment, heterogeneous table mapping,
    ontology field pairing, catalogue reconciliation, metadata integration, header equivalence.
F computer security, cyber defence, digital protection, hacker resistance, information secrecy,
    electronic safeguarding, computing fortresses, cryptic guarding.
S malware detection, virus program discovery, hostile software flags, trojan recognition, ransom
    code spotting, infected binary filtering, worm identification, spyware hunting.
S phishing filters, fraudulent mail blocking, scam message screening, deceptive link refusal,
    bogus website warning, credential bait rejection, impostor letter sieving, spoofed sender
    discovery.
S side channels, timing leakage, power trace attacks, cache spying, electromagnetic eavesdropping,
    speculative execution leaks, unintended emission exploits, concealed measurement.
S intrusion detection, network break in alarms, unauthorised access discovery, hostile packet
    notice, trespass sensing, perimeter breach alerts, infiltration recognition, backdoor entry
    warning.
S software fuzzing, random input testing, crash provoking inputs, mutational bug hunting,
    malformed data probing, vulnerability shaking, api bombardment, parser stress trials.
F hardware craft, integrated electronics, nanometre technology, processor building, electronics
    automation, semiconductors, microelectronics, gate level craft.
S chip placement, macro floorplanning, cell positioning on silicon, die layout arrangement,
    standard block siting, netlist location solving, wafer component packing, transistor
    geography.
S branch prediction, jump direction guessing, control flow speculation, conditional outcome
    forecasting, fetch path anticipation, taken bit estimation, pipeline fork foresight,
    instruction turn guesses.
S cache replacement, eviction choice, line victim selection, memory block retention, least useful
    discard, buffer page ousting, reuse distance policies, resident set turnover.
S analog sizing, amplifier dimensioning, transconductance tuning, opamp width choice, bias current
    setting, continuous circuit scaling, mixed signal trimming, resistor value search.
S neural accelerators, tensor coprocessors, inference engines in silicon, systolic arrays, matrix
    multiply units, deep network asics, dataflow chips, edge npu cores.
D earth and society, planet and people, environment and economy, global systems, geoscience and
    civics, world affairs modelling, natural and social systems, sustainability science.
F climate science, atmosphere research, weather study, meteorology, skies above, environmental
    observation, air masses, climatology.
S rainfall nowcasting, precipitation soon ahead, shower short term outlook, downpour minutes
    forecast, drizzle radar extrapolation, cloudburst immediate prediction, wet spell imminence,
    storm cell advection.
S hurricane tracks, cyclone paths, typhoon courses, tropical storm routes, eye wall trajectories,
    tempest movement, gale landfall location, vortex drift.
S sea ice extent, polar floe cover, arctic pack area, frozen ocean margins, glacial water sheet,
    antarctic brash concentration, iceberg field size, cryosphere reach.
S carbon accounting, emission bookkeeping, greenhouse gas inventories, co2 budgets, footprint
    auditing, fossil release tallies, methane ledgers, net zero reckoning.
S wildfire spread, forest blaze growth, bush burning progression, flame front advance, woodland
    combustion expansion, brushfire propagation, timber inferno extension, ember transport.
F energy technology, electric utilities, kilowatt technology, national electrification,
    electrotechnical research, voltage studies, megawatt stewardship, current and joules.
S solar forecasting, photovoltaic output prediction, sunshine yield estimates, panel production
    outlook, irradiance anticipation, rooftop generation guesses, insolation projection, sunlight
    harvest planning.
S battery ageing, accumulator wear, lithium degradation, cell lifetime decline, charge capacity
    fade, electrode health, anode deterioration, cathode senescence.
S demand response, consumption shifting, flexible usage, peak shaving, household load steering,
    appliance deferral, tariff driven curtailment, off peak incentives.
S wind turbines, rotor farms, aerogenerator operation, blade power conversion, windmill output,
    nacelle yaw control, breeze harvesting, offshore mill parks.
S fault location in feeders, line break pinpointing, short circuit finding, distribution failure
    siting, cable defect ranging, earth leak positioning, substation trip tracing, conductor
    damage discovery.
F finance, banking markets, economic trading, banking science, monetary analytics, capital
    studies, investment research, fiscal computing.
S stock prediction, share price forecasting, equity movement, bourse trend guessing, ticker return
    estimates, market direction calls, shareholder gain outlook, security quote extrapolation.
S credit scoring, borrower rating, loan default chance, debtor evaluation, lending worthiness,
    repayment odds, mortgage applicant grading, creditworthiness appraisal.
S portfolio choice, asset mix, holdings allocation, diversified basket selection, wealth
    distribution strategy, fund weighting, risk parity composition, nest egg balancing.
S fraud discovery, payment deception, card abuse detection, illicit transfer spotting, counterfeit
    transaction flags, money laundering hunts, swindle recognition, embezzlement tracing.
S option pricing, derivative valuation, volatility surfaces, contingent claim worth, strike
    premium calculation, call and put fairness, hedging quotes, futures contract appraisal.
F mobility and schooling, civic life, public provision, municipal affairs, urban living, citizen
    matters, town halls and classrooms, civil amenities.
S traffic forecasting, road flow prediction, congestion outlook, vehicle volume estimates, jam
    anticipation, commuter density projection, junction queue guesses, arterial speed foresight.
S ride matching, taxi dispatch, passenger driver pairing, cab assignment, carpool arrangement,
    hailing allocation, shared trip grouping, chauffeur rendezvous.
S dropout warning, student withdrawal risk, course abandonment, school leaving alerts, attrition
    foresight, truancy precursors, enrolment loss signals, quitting pupil notice.
S essay grading, composition marking, written exam scoring, theme paper evaluation, classroom
    prose rating, assignment mark giving, argumentation assessment, rubric judging.
S knowledge tracing, mastery estimation, skill state following, competence progress, concept
    retention monitoring, curricular understanding curves, proficiency evolution, forgetting
    dynamics.
"""
