"""The words of generated worlds, as data that :mod:`~.names` reads.

The full world has topics and methods with eight names each, the usual one first (``D`` is a domain,
``F`` a field, ``S`` a subtopic, ``M`` a method), and words of which none is part of a concept's
name: adjectives and nouns that fill texts, heads and tails that make up coined names. The words of
the micro world are common and short, so that a small vocabulary holds them all.
"""

TOPICS = """
D computer vision, visual computing, machine sight, optical perception, pictorial intelligence,
    image science, visual cognition, camera intelligence.
F object categories, everyday things, entity kinds, item classes, thing perception, visual nouns,
    appearance groups, instances in photographs.
S bird identification, avian species naming, ornithological classification, feathered animal
    recognition, songbird sorting, plumage categorising, wildfowl labelling, fledgling taxonomy.
S food logging, meal photography, dish cataloguing, cuisine tagging, nutrition snapshots, plate
    inventories, grocery glimpses, edible diaries.
S logo spotting, brand mark finding, trademark discovery, emblem detection, insignia localisation,
    company symbol search, badge pinpointing, corporate crest hunting.
S plant disease diagnosis, crop illness screening, leaf blight inspection, foliar infection
    checking, vegetation pathology triage, orchard sickness grading, botanical malady scoring,
    agronomic rot assessment.
S handwriting reading, manuscript transcription, cursive decipherment, penmanship digitising,
    scribbled note conversion, ink stroke parsing, longhand interpretation, calligraphy decoding.
F video understanding, footage semantics, cinema insight, moving imagery, recorded scenes, film
    perception, cinematic viewing, animated pixels.
S action localisation, activity timing, gesture boundary finding, deed segmentation, behaviour
    spotting in time, movement interval marking, exercise moment extraction, happening
    delimitation.
S pedestrian tracking, walker following, crowd trajectory linking, passerby association, foot
    traffic tracing, stroller pursuit, person path stitching, bystander monitoring.
S sports highlights, match summarisation, game recap mining, athletic moment picking, tournament
    digest editing, league clip curation, contest best bits, stadium replay selection.
S lip reading, silent mouth decoding, visual speech, oral shape transcription, labial motion
    interpretation, facial utterance inference, viseme sequencing, mouthing comprehension.
S surveillance anomalies, suspicious incident discovery, security camera irregularities, guard
    feed outliers, unusual event alarms, watchtower oddities, theft notice systems, abnormal
    loitering warning.
F spatial vision, stereoscopic worlds, three dimensional layout, volumetric shape, surface form,
    solid world building, euclidean world views, perspective composition.
S depth estimation, distance inference, range guessing, farness regression, stereo disparity,
    proximity mapping, remoteness measuring, monocular gauging.
S point cloud registration, lidar scan alignment, laser sweep matching, rangefinder cloud fitting,
    sparse dot merging, scanned fragment joining, echo constellation docking, sampled shell
    superposition.
S indoor reconstruction, room modelling, interior rebuilding, apartment meshing, household
    digitisation, furnished chamber capture, dwelling replication, floorplan recovery.
S pose recovery, body skeleton fitting, limb joint estimation, posture inference, human stance
    lifting, anatomical keypoints, torso articulation, mannequin alignment.
S camera calibration, lens parameter solving, intrinsic correction, optics self adjustment,
    shutter geometry tuning, focal length rectifying, distortion coefficient finding, rig
    alignment checks.
F image synthesis, picture fabrication, visual rendering, pixel forging, artwork computing,
    graphic craft, illustration automation, canvas artistry.
S face editing, portrait manipulation, visage retouching, countenance alteration, selfie
    transformation, likeness morphing, headshot modification, facial restyling.
S photo denoising, snapshot cleaning, grain removal, speckle suppression, shot noise filtering,
    static scrubbing, low light purifying, sensor hiss reduction.
S super resolution, detail upscaling, sharpness enlargement, fine texture magnification, megapixel
    upsampling, blurry zoom restoration, definition boosting, crispness expansion.
S sketch colouring, line drawing tinting, cartoon painting, outline hue filling, manga shading,
    doodle pigmentation, contour chroma completion, comic palette transfer.
S garment try on, virtual dressing, clothing overlay, outfit swapping, apparel fitting rooms,
    wardrobe simulation, fashion draping, costume compositing.
D language processing, text technology, linguistic computing, verbal intelligence, word science,
    computational philology, language engineering, discourse technology.
F prose machinery, prose automation, computer essayists, essayistic programs, wording engines,
    literary computing, linguistic expression, paragraph craft.
S story writing, tale spinning, fiction composition, plot narration, fable invention, novel
    drafting, anecdote construction, saga crafting.
S news summarisation, press digesting, journalistic condensation, headline abstracting, article
    shortening, bulletin compression, reportage abridgement, editorial boiling down.
S code completion, program filling, software autocompletion, source snippet suggestion, script
    continuation, developer line prediction, function body infilling, coding assistant hints.
S poetry creation, verse making, rhyme production, sonnet composing, lyric invention, stanza
    building, haiku synthesis, ballad authorship.
S machine translation, cross lingual conversion, foreign sentence rendering, interlingual
    transfer, tongue switching, bilingual rewriting, multilingual paraphrase, idiom carrying over.
F literature insight, fact gathering, facts out of pages, textual discernment, bulk perusal,
    library digestion, literature sifting, archival insight.
S named entity tagging, proper noun marking, person and place spotting, mention labelling,
    appellation finding, title noun chunking, surname detection, toponym annotation.
S relation mining, link discovery, tie extraction, connection harvesting, association finding
    between entities, kinship triples, bond inference, affiliation unearthing.
S table parsing, spreadsheet reading, grid comprehension, cell layout analysis, tabular
    interpretation, row column decoding, ledger sheet understanding, matrix document intake.
S event timelines, chronology building, occurrence ordering, historical sequence charting, dated
    happening arrangement, temporal storyline assembly, milestone listing, annals compilation.
S patent analysis, invention filing study, intellectual property reading, claim dissection,
    innovation document review, licence text examination, inventor disclosure scanning, prior art
    checks.
F dialogue technology, chatty software, interactive discourse, spoken partners, colloquy engines,
    verbal exchange computing, talkative interfaces, interlocutor design.
S customer support, helpdesk answering, service ticket handling, complaint resolution, client
    assistance bots, user aid hotlines, call centre relief, consumer care replies.
S emotional companionship, empathetic talk, consoling conversation, affective friendship,
    sympathetic listening, comforting chatter, mood aware rapport, tender confiding.
S negotiation bots, bargaining agents, haggling machines, deal making programs, price dispute
    talkers, compromise seekers, settlement brokers, barter conversationalists.
S persona consistency, character stability, identity coherence, role faithfulness, personality
    upkeep, self description agreement, profile adherence, alter ego preservation.
S tutoring conversations, teaching dialogues, socratic instruction, pupil coaching talk, homework
    guidance chat, lesson question sessions, mentor exchanges, learner interrogation.
F talk acoustics, oral technology, acoustic language, utterance computing, phonetic technology,
    sonic linguistics, microphone science, aural words.
S speaker verification, voice authentication, talker identity proof, vocal passport checks, caller
    confirmation, voiceprint matching, orator attestation, larynx biometrics.
S accent conversion, dialect shifting, pronunciation transfer, regional speech remapping, brogue
    neutralising, intonation relocation, native sound adaptation, drawl transformation.
S keyword wake up, trigger phrase detection, hotword listening, activation term spotting,
    attention call recognition, summoning word sensing, command start alerts, voice switch
    arousal.
S noisy transcription, robust dictation, street audio captioning, clamour resistant recognition,
    babble tolerant typing, din proof stenography, cafeteria subtitling, rumble hardened
    shorthand.
S prosody modelling, rhythm and stress control, speech melody design, cadence shaping, tonal
    contour planning, emphasis placement, lilt generation, inflection steering.
D robotics, autonomous machines, intelligent mechanisms, embodied automation, mechanical agents,
    robot science, cybernetic devices, actuated intelligence.
F robot handwork, mechanical dexterity, arm skill, gripper skill, object handling automation, end
    effector craft, manual robotics, handy hardware.
S grasp prediction, grip forecasting, prehension planning, pinch point choice, finger hold
    selection, clutch quality rating, seizing pose proposal, clasp anticipation.
S cloth folding, textile creasing, laundry stacking, fabric pleating, linen tidying, shirt
    doubling, towel arranging, drapery smoothing.
S tactile sensing, touch feeling, haptic perception, contact pressure reading, skin like
    sensation, fingertip awareness, palpation instruments, slip feeling.
S assembly insertion, peg in hole fitting, part mating, component plugging, connector docking,
    workpiece joining, socket seating, bolt engagement.
S liquid pouring, fluid serving, beverage dispensing, drink decanting, water tipping, juice
    ladling, spill free filling, carafe emptying.
F robot wayfinding, mobile guidance, driverless mobility, getting around autonomously,
    cartographic rovers, navigational autonomy, itinerant robots, wheeled independence.
S place recognition, location revisiting, landmark recall, loop closure, site familiarity, spot
    reidentification, whereabouts matching, locale remembrance.
S obstacle avoidance, collision prevention, hindrance dodging, barrier evasion, bump free travel,
    crash circumvention, impediment skirting, swerving safety.
S lane following, road marking keeping, carriageway centring, highway stripe adherence, kerb
    parallel driving, motorway line holding, asphalt alignment, trafficway staying.
S drone exploration, aerial scouting, quadcopter surveying, flying reconnaissance, unmanned
    aircraft roaming, airborne frontier search, rotorcraft discovery, hovering patrol.
S parking planning, vehicle berthing, car bay manoeuvres, garage entry sequencing, stationary slot
    docking, automobile stowing, valet trajectories, kerbside placement.
F legs and feet robots, limbed mobility, gait mechanics, ambulatory science, stride science, pedal
    propulsion, footed robots, locomotor craft.
S quadruped running, four legged sprinting, dog robot galloping, mechanical hound racing, cheetah
    like bounding, canine machine trotting, tetrapod dashing, hoofed cantering.
S stair climbing, step ascending, staircase mounting, flight scaling, riser traversal, multilevel
    hiking, threshold clambering, terrace going up.
S fall recovery, toppling comeback, stumble rescue, getting up again, capsize righting, tumble
    restoration, knockdown resilience, overturn repair.
S biped balance, two legged stability, upright equilibrium, humanoid steadiness, standing poise,
    vertical sway rejection, android footing, bipedal composure.
S energy efficient walking, low power strolling, frugal ambulation, metabolic cost saving, battery
    sparing steps, effort minimal marching, thrifty treading, economical pacing.
F human robot teamwork, people centred automation, social robotics, shared workspaces,
    collaborative robots, companion robotics, sociable hardware, cooperative cobots.
S handover timing, object passing moments, give and take coordination, item transfer synchrony,
    receiving readiness, delivery instant choice, relay exchange scheduling, proffering cues.
S gesture commands, hand signal control, arm waving instruction, pointing directives, sign driven
    operation, mimed orders, semaphore steering, beckoning interfaces.
S intention inference, goal reading, purpose guessing, aim anticipation, plan divination, motive
    estimation, desire attribution, objective mind reading.
S trust calibration, reliance adjustment, confidence in machines, credence tuning, faith
    appropriateness, dependability judgement, overtrust mitigation, assurance balancing.
S assistive feeding, mealtime helpers, spoon aid, eating support, bite transfer, dining
    caretakers, fork assistance, nourishment delivery.
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
METHODS = """
M transformer attention, self attending layers, query key weighting, multi head focus, token
    mixing by relevance, softmax alignment blocks, scaled dot product stacks, attentive encoders.
M diffusion models, iterative denoiser priors, score based sampling, noise reversal chains,
    langevin refinement, gradual corruption inversion, stochastic heat processes, annealed score
    fields.
M contrastive learning, positive negative pairing, instance discrimination, infonce objectives,
    similarity pulling losses, augmented view agreement, siamese repulsion, metric embedding
    pretraining.
M graph networks, message passing, node neighbourhood aggregation, relational convolutions, vertex
    edge propagation, topology aware layers, adjacency encoders, structured link nets.
M reinforcement learning, reward maximisation, policy gradients, trial and error agents, value
    iteration training, markov decision optimisers, temporal difference updates, actor critic
    schemes.
M imitation learning, behaviour cloning, demonstration copying, apprenticeship schemes, expert
    mimicry, teacher trajectory replay, inverse reward recovery, observational mimesis.
M bayesian inference, posterior estimation, probabilistic belief updating, credible interval
    models, hierarchical priors, conjugate likelihoods, monte carlo marginals, evidence
    integration.
M variational autoencoders, latent bottleneck codes, evidence lower bounds, amortised encoders,
    reparameterised compressors, elbo driven representations, stochastic code books, hidden factor
    decoders.
M adversarial training, generator discriminator games, minimax perturbation, gan objectives,
    critic versus forger setups, worst case examples, two player rivalry, attack hardened fitting.
M knowledge distillation, teacher student compression, soft target transfer, dark logits, mentor
    network shrinking, small model imitation of large, response matching compaction, ensemble
    squeezing.
M network pruning, weight removal, sparse connection trimming, lottery tickets, magnitude
    thinning, redundant unit deletion, synapse cutting, structured slimming.
M low bit quantisation, integer arithmetic, eight digit weights, precision lowering, rounded
    parameter codes, binary activations, fixed point conversion, coarse numeric formats.
M meta learning, learning to learn, few shot adaptation, episodic task tuning, fast weight
    initialisation, maml style optimisation, across task generalisers, rapid new class
    acquisition.
M federated learning, private device averaging, decentralised client training, on device
    aggregation, cross silo updates, data local collaboration, secure gradient pooling, edge
    participant rounds.
M curriculum learning, easy to hard ordering, staged difficulty, graded example pacing,
    progressive training schedule, self paced complexity, simple first syllabus, sample
    sequencing.
M self training, pseudo labels, bootstrapped annotation, confident unlabelled reuse, noisy student
    loops, semi supervised propagation, entropy minimisation, automatic relabelling.
M memory networks, external storage cells, differentiable notebooks, recurrent gates, long short
    term units, read write controllers, associative recall stores, persistent state slots.
M retrieval augmentation, nonparametric lookup, neighbour fetching, external corpus grounding,
    document conditioned models, datastore interpolation, passage supported reasoning, search
    backed generation.
M mixture of experts, gated specialists, conditional computation, sparse routing, switch layers,
    divide and conquer submodels, top k dispatchers, modular committees.
M evolutionary search, genetic algorithms, population based tuning, mutation and crossover,
    natural selection heuristics, swarm optimisation, neuroevolution, darwinian operators.
M kernel machines, support vectors, reproducing hilbert spaces, gaussian processes, margin
    maximisers, covariance functions, radial basis expansions, nystrom features.
M tree ensembles, random forests, boosted stumps, gradient boosting, decision rule bagging, cart
    committees, leafwise additive learners, split based aggregation.
M causal inference, treatment effect estimation, counterfactual reasoning, do calculus,
    instrumental variables, confounder adjustment, intervention analysis, structural equation
    models.
M neurosymbolic reasoning, logic guided nets, differentiable rules, theorem driven learning, first
    order constraints, inductive programming, symbol manipulation hybrids, deductive embeddings.
M physics informed networks, differential equation residuals, conservation constrained nets, pde
    regularisation, hamiltonian priors, mechanistic surrogates, governing law losses, operator
    learning.
M spectral methods, fourier features, frequency domain filters, wavelet decompositions,
    eigenvector bases, harmonic expansions, laplacian eigenmaps, fast transform layers.
M normalising flows, invertible mappings, exact likelihood bijections, jacobian determinants,
    coupling transforms, density warping, reversible generators, change of variables.
M prompt engineering, in context examples, instruction phrasing, soft prefix tuning, zero shot
    templates, chain of thought cues, frozen model steering, demonstration prefixing.
M active learning, uncertainty sampling, label budget queries, annotator in the loop, informative
    point selection, oracle questioning, query by committee, pool based acquisition.
M state space models, linear recurrences, structured sequence kernels, kalman layers, selective
    scan blocks, hidden dynamical systems, long convolution mixers, continuous time memory.
"""
ADJECTIVES = """abundant amiable austere balmy bleak bold brisk candid cheerful civil clever cogent
comely compact copious cordial courtly crude curious daring decent deft delicate dense diligent
docile durable eager earnest elegant eminent exotic faint famous fertile festive fervent fickle
firm fluent fond formal frank fresh genial gracious grand hardy hasty hearty honest humble
idle jolly keen kindly lavish lively lofty loyal lucid lush mellow merry modest noble
obscure orderly ornate patient peculiar placid pleasant polite potent proud prudent quaint
quiet ready refined resolute rugged serene sincere sober solemn splendid stately stout sturdy
subtle sublime superb tidy timely tranquil upbeat urbane valid vast vivid wary wistful worthy
zealous"""

NOUNS = """advances anchors bargains baselines beacons benefits bridges bundles bursts ceilings
charms chapters comparisons comforts corners crafts customs debates delays doubts drafts echoes
efforts episodes essays examinations expectations fashions favours festivals fragments furnishings
gaps gardens gestures glimmers habits harvests hazards heights hopes horizons hurdles improvements
insights intuitions journeys landmarks lanterns lessons limits marvels measures mixtures
motives murmurs mysteries notions ties obstacles occasions omens oddments ornaments
outcomes parades patterns pauses pearls phases pillars portions practices premises promises
proofs puzzles quarries rehearsals remedies results revisions rhythms riddles rivers savings
scenarios scruples seasons settings shortcuts sketches spirits strands summits surprises
temptations tensions textures themes threads traditions treasures trends triumphs tuitions
varieties ventures verdicts virtues voyages wagers whispers wonders"""

HEADS = """Amber Apex Argo Astra Atlas Aura Basil Birch Blaze Brisk Cedar Chroma Cinder Citra Clover
Cobalt Comet Coral Crest Crystal Cypher Dahlia Dapple Delta Drift Dusk Echo Elder Ember Fable
Falcon Fern Flint Flora Forge Frost Gala Garnet Ginger Glade Glint Grove Halo Harbor Hazel Helio
Heron Indigo Iris Ivory Jade Jasper Juno Juniper Karma Kestrel Kite Koala Lark Lattice Laurel
Lilac Linden Lotus Lumen Lunar Lyra Magma Maple Marble Marlin Meadow Mica Mint Mirage Mosaic Nectar
Nimbus Noble Nova Oasis Ochre Olive Onyx Opal Orbit Orchid Osprey Otter Panda Pearl Pebble Petal
Phoenix Pine Plume Polar Prism Pulse Quartz Quill Quince Raven Reef Ridge Robin Ruby Sable Saffron
Sage Scout Sierra Silk Sparrow Spruce Summit Swift Tango Teal Terra Thistle Tidal Topaz Tulip
Umber Velvet Verdant Violet Vista Willow Zephyr Zinc"""

TAILS = """Arch Atlas Axis Band Beam Bend Bloom Bolt Bond Bow Brook Cast Chart Chime Clad Clock Coil
Core Craft Crane Crown Dash Dawn Deck Dial Dock Dome Dune Fall Field Fin Flare Fleet Flow Fold Ford
Frame Gate Gaze Gear Gem Glide Glow Grain Guild Gust Haven Helm Hive Hook Horn Isle Jet Keel Keep
Key Knot Lace Lane Leaf Lens Lift Light Line Link Lock Loom Loop Mark Mast Mate Maze Mill Mind Mist
Moor Moss Nest Net Node Pace Pass Path Peak Pier Pilot Pine Plan Play Pod Pond Port Post Press Quay
Quest Quilt Rail Rain Ray Reach Reed Rift Ring Rise Road Rock Root Rope Rush Sail Scope Seed Shade
Shell Shift Shore Span Spark Spin Spire Sport Spring Stem Stone Storm Strand Stride Surge Sweep
Swirl Tale Tide Tower Trace Trail Turn Vale Vault Veil Wave Weave Wind Wing Wood Yard"""

MICRO_THINGS = """river stream brook, wheat grain crop, bird hen owl, bridge arch span, market shop
fair, forest wood grove, engine motor pump, school class college, garden yard lawn, city town
village"""
MICRO_TASKS = """map chart plan, count tally sum, repair fix mend, watch guard observe, trade sale
deal, growth rise gain"""
MICRO_METHODS = """wave net, ripple mesh, swell web; gate tree, door branch, latch twig; deep
memory, long recall, far store; soft vote, mild ballot, gentle choice; fast sort, quick rank, swift
order; mirror pair, glass twin, echo double; random walk, chance stroll, dice hike; heat flow, warm
drift, fire current; rule book, law list, code page; small teacher, little tutor, tiny coach; ring
graph, loop link, circle chain; light filter, lamp sieve, beam strainer"""
MICRO_FIELDS = """water earth land, farm food harvest, road build stone, animal wild nature, people
home life, money work craft"""
MICRO_DOMAINS = """outdoor open field, indoor closed house"""
MICRO_ADJECTIVES = """good new old large calm safe clear clean true plain sharp steady simple common
strong early late rare broad narrow round flat heavy thin"""
MICRO_NOUNS = """result idea point case side part view step form line level range group set mark
tool note space cost time rate size limit test"""
MICRO_HEADS = """red blue green black white gold silver pink brown gray purple orange amber ivory
jade ruby rose navy teal coral plum olive lime lilac mint pearl rust sand snow storm sun moon star
cloud frost mist thunder copper iron tin"""
MICRO_TAILS = """fox bear wolf deer hare mole seal crab swan crow dove hawk frog toad newt moth wasp
ant bee goat lamb pony mule ox boar lynx puma lion tiger camel whale shark trout pike eel clam snail
worm mouse rat"""
